"""The wheel runs on other systems, and with nothing installed but its dependencies."""

import asyncio
import json
import platform
import re
import sys
from pathlib import Path

import pytest

from tests.support.deployment import LINES, deployed
from tests.support.distributions import README_EXAMPLE, ROOT, run

pytestmark = [pytest.mark.foreign, pytest.mark.timeout(600)]  # all dependencies are installed first
COMPATIBILITY = (ROOT / "docs/compatibility.md").read_text(encoding="utf-8")
FACADE = """
import nearstream
from nearstream import *

assert set(nearstream.__all__) <= globals().keys()
print(nearstream.__file__)
"""
# The rest needs the extras `crawl` and `scrapy`.
IMPORT_ALL = """
import importlib, pkgutil
import nearstream
names = [module.name for module in pkgutil.walk_packages(nearstream.__path__, "nearstream.")]
for name in names:
    if ".scrapy" not in name and not name.endswith(("__main__", ".crawl.html_child")):
        importlib.import_module(name)
print(len(names))
"""


def test_a_wheel_runs_on_systems_as_old_as_the_page_says(wheel: Path, tmp_path: Path) -> None:
    libc, release = platform.libc_ver()
    if libc != "glibc":
        pytest.skip("manylinux is about what a compiler makes for Linux with glibc")
    assert "-cp311-abi3-" in wheel.name
    shown = " ".join(run([sys.executable, "-m", "auditwheel", "show", str(wheel)], tmp_path).split())
    consistent = re.search(r'consistent with the following platform tag: "manylinux_(\d+)_(\d+)_\w+"', shown)
    assert consistent, shown
    told = re.search(r"`manylinux_(\d+)_(\d+)`", COMPATIBILITY)
    assert told
    if int(release.partition(".")[2]) <= 36:  # 2.36 is that of Debian 12, of which the page speaks
        assert consistent.groups() == told.groups()


def test_the_public_names_and_the_command_work_with_the_dependencies_alone(bare: Path, tmp_path: Path) -> None:
    python, command = str(bare / "python"), str(bare / "nearstream")
    (tmp_path / "client.py").write_text(FACADE + README_EXAMPLE)
    place, *printed = run([python, "client.py"], tmp_path).splitlines()
    assert Path(place).is_relative_to(bare.parent)
    assert printed == ["first unique None 1", "second exact_duplicate first 2"]
    assert int(run([python, "-c", IMPORT_ALL], tmp_path)) > 100
    (tmp_path / "a.txt").write_text("one two three four five six seven eight nine")
    (signature,) = run([command, "sign", "a.txt"], tmp_path).splitlines()
    assert json.loads(signature)[2] == "a.txt"


async def test_a_worker_runs_with_the_dependencies_alone(
    bare: Path, kafka: str, redis_url: str, tmp_path: Path
) -> None:
    async with deployed(kafka, redis_url, tmp_path) as deployment:
        with deployment.worker(python=str(bare / "python")) as worker:
            await deployment.send(deployment.examples(LINES[:2]))
            await deployment.drained(180)
        assert worker.returncode == 0
        tail = [str(bare / "nearstream"), "tail", "--from-start", "--until-end", "--json"]
        told = await asyncio.to_thread(run, tail, tmp_path, **deployment.environment)
        assert {json.loads(line)["id"] for line in told.splitlines()} == {json.loads(line)["id"] for line in LINES[:2]}
