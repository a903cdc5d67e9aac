"""C of the benchmarks, compiled when they run."""

import ctypes
import shutil
import subprocess
import sysconfig
import tempfile
from pathlib import Path

from benchmarks.texts import ROOT


class CompilerAbsentError(Exception):
    """No compiler was found, or it does not take the source."""


def library(source: str) -> ctypes.CDLL:
    """A C file of this folder as a shared library, built with cc -O3 for any processor of this kind.

    Raises:
        CompilerAbsentError: Says why.
    """
    compiler = shutil.which("cc")
    if compiler is None:
        raise CompilerAbsentError("no cc on PATH")
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "built.so"
        includes = ["-I", str(ROOT / "streams"), "-I", sysconfig.get_paths()["include"]]
        command = [compiler, "-O3", "-shared", "-fPIC", "-w", *includes, "-o", str(target)]
        done = subprocess.run(  # noqa: S603 - our own file
            [*command, str(ROOT / "benchmarks" / source)], capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise CompilerAbsentError(f"{source}: {next(iter(done.stderr.splitlines()), 'not compiled')}")
        return ctypes.CDLL(str(target))
