"""Every block of the README does what it says."""

import contextlib
import io
import os
import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
README = (ROOT / "README.md").read_text()
BLOCKS = re.findall(r"```(\w*)\n(.*?)```", README, re.DOTALL)


def test_the_python_block_prints_what_its_comment_says() -> None:
    (block,) = [text for kind, text in BLOCKS if kind == "python"]
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(block, "README.md", "exec"), {"__name__": "readme"})  # noqa: S102 - our own text
    (expected,) = re.findall(r"# (ExactDuplicate .*)", block)
    assert printed.getvalue().strip() == expected


def test_the_kafka_way_runs_as_it_stands(kafka: str, redis_url: str, tmp_path: Path) -> None:
    """Its own stack, in its own folder; `tail` is ended by a reader that has seen enough."""
    del kafka, redis_url  # asked for so that a machine without them skips
    (block,) = [text for kind, text in BLOCKS if kind == "sh" and "nearstream worker" in text]
    block = block.replace("2> worker.log", f"2> {tmp_path}/worker.log")
    block = block.replace("tail --from-start", "tail --from-start | head -n 5")
    inherited = {key: value for key, value in os.environ.items() if not key.startswith("NEARSTREAM_")}
    environment = {**inherited, "STACK": str(tmp_path / "stack")}
    done = subprocess.run(
        ["bash", "-c", f"set -eu\n{block}"],  # noqa: S607
        env=environment,
        cwd=ROOT,
        capture_output=True,
        timeout=120,
        check=False,
    )
    told = done.stdout.decode()
    assert done.returncode == 0, done.stderr.decode()
    assert re.findall(r"^(?:near_duplicate|exact_duplicate|version|containment|rearranged) ", told, re.MULTILINE)
    assert "FAIL" not in told
