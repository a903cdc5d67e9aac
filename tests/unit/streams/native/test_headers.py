"""Each header of the C code names what it needs."""

import subprocess
import sysconfig
from pathlib import Path

import pytest

NATIVE = Path(__file__).parents[4] / "src/nearstream/streams/native"


@pytest.mark.parametrize("backwards", [False, True])
def test_headers_compile_in_any_order(backwards: bool) -> None:
    """Of two headers each comes first once, so what it needs is there only if it is included."""
    headers = sorted((str(path.relative_to(NATIVE)) for path in NATIVE.rglob("*.h")), reverse=backwards)
    lines = "".join(f'#include "{header}"\n' for header in headers)
    command = ["gcc", "-std=c11", "-fsyntax-only", "-DPy_LIMITED_API=0x030b0000", "-I.", "-x", "c", "-"]
    python = f"-I{sysconfig.get_path('include')}"
    done = subprocess.run([*command, python], input=lines, cwd=NATIVE, capture_output=True, text=True, check=False)
    assert len(headers) > 30
    assert done.returncode == 0, done.stderr
