"""A C extension that cannot be used ends the start with one line that says what to do, and its headers stand alone."""

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[4]
NATIVE = ROOT / "src/nearstream/streams/native"
LOAD = """
import sys
sys.meta_path = [each for each in sys.meta_path if "editable" not in str(each)]  # this checkout may be installed
import nearstream.streams.native
"""


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        ("_native.py", "INTERFACE = 1", "was built from other sources"),
        ("_native.abi3.so", "no library", "cannot be loaded"),
        ("other.py", "", "cannot be loaded (No module named"),
    ],
)
def test_a_missing_or_stale_extension_is_told_in_one_line(name: str, content: str, told: str, tmp_path: Path) -> None:
    shutil.copytree(ROOT / "src", tmp_path / "src", ignore=shutil.ignore_patterns("__pycache__", "*.so"))
    (tmp_path / "src/nearstream/streams/native" / name).write_text(content)
    done = subprocess.run(
        [sys.executable, "-P", "-c", LOAD],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"PYTHONPATH": str(tmp_path / "src")},
    )
    line = done.stderr.splitlines()[-1]
    assert line.startswith("ImportError: nearstream.streams.native._native")
    assert told in line
    assert "install nearstream anew" in line


@pytest.mark.parametrize("backwards", [False, True])
def test_headers_compile_in_any_order(backwards: bool) -> None:
    """Of two headers each comes first once, so what it needs is there only if it is included."""
    headers = sorted((str(path.relative_to(NATIVE)) for path in NATIVE.rglob("*.h")), reverse=backwards)
    lines = "".join(f'#include "{header}"\n' for header in headers)
    command = ["gcc", "-std=c11", "-fsyntax-only", "-DPy_LIMITED_API=0x030b0000", "-I.", "-x", "c", "-"]
    python = f"-I{sysconfig.get_path('include')}"
    done = subprocess.run([*command, python], input=lines, cwd=NATIVE, capture_output=True, text=True, check=False)
    assert len(headers) > 20
    assert done.returncode == 0, done.stderr
