"""Compile the C files of the benchmarks when these run."""

import ctypes
import shutil
import subprocess
import sysconfig
import tempfile
from pathlib import Path

from benchmarks.texts import ROOT


class CompilerAbsentError(Exception):
    """No compiler was found, or it cannot compile the source."""


def library(source: str) -> ctypes.CDLL:
    """Compile a C file of this folder with cc -O3.

    Only baseline instructions are used, as in a library for any processor of this architecture.

    Raises:
        CompilerAbsentError: There is no compiler, or it failed. The message says why.
    """
    compiler = shutil.which("cc")
    if compiler is None:
        raise CompilerAbsentError("no C compiler: cc is not on PATH")
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "built.so"
        includes = ["-I", str(ROOT / "streams/native"), "-I", sysconfig.get_paths()["include"]]
        command = [compiler, "-O3", "-shared", "-fPIC", "-w", *includes, "-o", str(target)]
        done = subprocess.run(  # noqa: S603 - our own file
            [*command, str(ROOT / "benchmarks/speed" / source)], capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise CompilerAbsentError(
                f"{source}: {next(iter(done.stderr.splitlines()), 'cc failed without a message')}"
            )
        return ctypes.CDLL(str(target))
