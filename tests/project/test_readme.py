"""Every code block of the README works as described."""

import contextlib
import io
import os
import re
import subprocess
from pathlib import Path

import pytest

from nearstream.workers.cli.main import main

ROOT = Path(__file__).parent.parent.parent
README = (ROOT / "README.md").read_text()
BLOCKS = re.findall(r"```(\w*)\n(.*?)```", README, re.DOTALL)


@pytest.mark.parametrize("page", ["README.md", "docs/python.md"])
def test_the_python_block_prints_what_its_comment_says(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (block,) = re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(), re.DOTALL)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(block, page, "exec"), {"__name__": "readme"})  # noqa: S102 - our own text
    ((first, second),) = re.findall(r"# (first .*), then: (second .*)", block)
    assert printed.getvalue().splitlines() == [first, second]


def test_the_demo_block_shows_lines_that_the_demo_prints_in_order(capsys: pytest.CaptureFixture[str]) -> None:
    (block,) = [text for kind, text in BLOCKS if not kind and "near_duplicate" in text]
    shown = [line.removesuffix("]").removesuffix("...") for line in block.splitlines()]
    assert main(["demo"]) == 0
    printed = iter("".join(capsys.readouterr()).splitlines())
    assert [line for line in shown if not any(found.startswith(line) for found in printed)] == []


def test_the_kafka_way_runs_as_it_stands(kafka: str, redis_url: str, tmp_path: Path) -> None:
    """Its stack has the servers of the tests, and `head` ends its `tail` after all verdicts and some events."""
    (block,) = [text for kind, text in BLOCKS if kind == "sh" and "nearstream worker" in text]
    block = block.partition("\n")[2].replace("2> worker.log", f"2> {tmp_path}/worker.log")  # .venv is installed
    block = block.replace("tail --from-start", "tail --from-start | head -n 210")
    inherited = {key: value for key, value in os.environ.items() if not key.startswith("NEARSTREAM_")}
    name = tmp_path.name.replace("_", "-")
    environment = {
        **inherited,
        "STACK": str(tmp_path / "stack"),
        "NEARSTREAM_KAFKA": kafka,
        "NEARSTREAM_REDIS": redis_url,
        "NEARSTREAM_STATUS": "off",
        **{f"NEARSTREAM_{setting}": name for setting in ("TOPIC_PREFIX", "GROUP", "NAMESPACE")},
    }
    done = subprocess.run(
        ["bash", "-c", f"set -eu\n{block}"],  # noqa: S607
        env=environment,
        cwd=ROOT,
        capture_output=True,
        timeout=120,
        check=False,
    )
    output = done.stdout.decode()
    assert done.returncode == 0, done.stderr.decode()
    pairs = r"(?:near_duplicate|exact_duplicate|version|containment|rearranged) "
    for line in (r"verdict unique: ", r"verdict (?:near|exact)_duplicate: ", pairs):
        assert re.search(f"^{line}", output, re.MULTILINE)
    assert re.search(r"^the largest families:$", output, re.MULTILINE)
    assert "FAIL" not in output
