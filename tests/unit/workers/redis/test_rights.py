"""What the functions call is tried at the start of a worker, and granted by the documented rights."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[4]
SOURCES = {path.name: path.read_text() for path in (ROOT / "workers/redis/server/lua").glob("*.lua")}
CALLED = {name for source in SOURCES.values() for name in re.findall(r"\bcall\('([A-Z]+)'", source)}


def test_each_command_of_the_functions_is_tried_at_the_start() -> None:
    probe = SOURCES["claims.lua"].partition("_probe_")[2]
    assert {"HGET", "ZADD", "HSETNX"} <= CALLED
    assert set(re.findall(r"'([A-Z]+)'", probe)) >= CALLED


def test_each_command_of_the_functions_is_granted_by_the_documented_rights() -> None:
    text = (ROOT / "docs/operations.md").read_text().replace("\\\n", " ")
    (line,) = re.findall(r"^user nearstream on .*$", text, re.MULTILINE)
    assert {name.lower() for name in CALLED} <= set(re.findall(r"\+([a-z]+)(?:\s|$)", line))
