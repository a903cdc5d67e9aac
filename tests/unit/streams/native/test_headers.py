"""Each header of the C code names what it needs."""

import subprocess
import sysconfig
from pathlib import Path

NATIVE = Path(__file__).parents[4] / "src/nearstream/streams/native"


def test_each_header_compiles_alone() -> None:
    headers = sorted(str(path.relative_to(NATIVE)) for path in NATIVE.rglob("*.h"))
    python = sysconfig.get_path("include")
    command = ["gcc", "-std=c11", "-fsyntax-only", "-DPy_LIMITED_API=0x030b0000", "-I.", f"-I{python}", "-x", "c"]
    done = subprocess.run([*command, *headers], cwd=NATIVE, capture_output=True, text=True, check=False)
    assert len(headers) > 30
    assert done.returncode == 0, done.stderr
