"""What a run of tests says at its end, and that nothing is skipped where nothing may be."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
TESTS = """\
import pytest

def test_good(): pass

@pytest.mark.parametrize("number", range(10))
def test_bad(number): assert number < 0, f"{number} is no negative number"

@pytest.fixture
def broken(): raise RuntimeError("nothing to test with")

def test_without_fixture(broken): pass

@pytest.mark.skip(reason="marked")
def test_marked(): pass

def test_skips_itself(): pytest.skip("itself")

@pytest.fixture
def absent(): pytest.skip("no fixture")

def test_skipped_by_its_fixture(absent): pass
"""
SKIPPED = ("test_marked", "test_skips_itself", "test_skipped_by_its_fixture")


def run(folder: Path, *arguments: str) -> str:
    """Run the tests above with the rules of this project where nothing may be skipped, and return what is printed."""
    (folder / "pytest.ini").touch()
    (folder / "test_some.py").write_text(TESTS)
    inherited = {name: value for name, value in os.environ.items() if "PYTEST" not in name}
    environment = inherited | {"PYTHONPATH": str(ROOT), "CI": "true"}
    command = [sys.executable, "-m", "pytest", "-p", "tests.conftest", "-n", "0", "-q", *arguments]
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=240, check=False
    )
    return done.stdout


def test_a_red_run_ends_with_the_commands_that_run_its_failures_alone(tmp_path: Path) -> None:
    lines = run(tmp_path, "-k", "good or bad or without").splitlines()
    listed = [line for line in lines if line.startswith(".venv/bin/pytest -n 0 ")]
    assert len(listed) == 8
    (one,) = [line for line in listed if "[4]" in line]
    assert "AssertionError: 4 is no negative number" in one
    assert "and 3 more, which the lines above name" in lines


def test_what_is_skipped_fails_where_nothing_may_be(tmp_path: Path) -> None:
    lines = run(tmp_path, *(f"test_some.py::{name}" for name in SKIPPED)).splitlines()
    failed = [line for line in lines if line.startswith(".venv/bin/pytest -n 0 ")]
    assert len(failed) == len(SKIPPED)
    for name in SKIPPED:
        assert [line for line in failed if f"::{name} " in line and "skipped where nothing may be: " in line]


def test_a_file_that_skips_itself_fails_where_nothing_may_be_skipped(tmp_path: Path) -> None:
    for name, how in (("lacks", 'importorskip("no_such_module")'), ("leaves", 'skip("no", allow_module_level=True)')):
        (tmp_path / f"test_{name}.py").write_text(f"import pytest\npytest.{how}\n\ndef test_good(): pass\n")
    told = run(tmp_path, "-k", "good")
    assert "2 errors" in told
    for name in ("lacks", "leaves"):
        assert f"test_{name}.py: skipped where nothing may be: " in told
