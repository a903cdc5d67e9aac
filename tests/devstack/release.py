"""Make what a release has: wheels for two kinds of processors, the sources, the list of parts, the notes."""

import os
import shutil
import sys
import tempfile
from pathlib import Path

from tests.devstack.parts import ROOT, list_parts
from tests.devstack.server import run_to_end
from tests.devstack.wheels import python_environment

MACHINES = ("x86_64", "aarch64")
OLDEST_LIBC = "2_17"  # for which zig compiles
_TOOLS = ("setuptools>=77", "wheel>=0.45", "ziglang>=0.13")
_SOURCES = ("pyproject.toml", "MANIFEST.in", "build_backend", "README.md", "LICENSE", "src", "examples")
# Built as for a processor of another kind: sysconfig takes its name from this variable.
_WHEEL = """
import os, sys, tempfile
from pathlib import Path
sys.path.insert(0, "build_backend")
import compiled
with tempfile.TemporaryDirectory() as folder:
    os.environ["CC"] = compiled.zig_in(Path(folder), sys.argv[1])
    compiled.build_wheel(sys.argv[2])
"""
_SDIST = "import sys; sys.path.insert(0, 'build_backend'); import compiled; compiled.build_sdist(sys.argv[1])"


def make_release(target: Path) -> None:
    """Write all parts of a release to a folder, which is emptied first."""
    python = str(python_environment(*_TOOLS) / "bin/python")
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    with tempfile.TemporaryDirectory(prefix="nearstream-release-") as name:
        for machine in MACHINES:
            shutil.copy(_wheel(python, machine, Path(name) / machine), target)
        command = ["env", "-C", str(copy_sources(Path(name) / "sources")), python, "-c", _SDIST, str(target.resolve())]
        run_to_end(command, purpose="packing the sources")
    list_parts(target / "nearstream.cdx.json")
    shutil.copy(ROOT / "CHANGELOG.md", target)


def _wheel(python: str, machine: str, folder: Path) -> Path:
    """Build the wheel for processors of a kind, whichever this machine has, and return its path."""
    variables = [f"_PYTHON_HOST_PLATFORM=linux-{machine}", f"SOURCE_DATE_EPOCH={_committed()}"]
    build = ["env", "-C", str(copy_sources(folder / "sources")), *variables, python, "-c", _WHEEL, machine, str(folder)]
    run_to_end(build, purpose=f"building the wheel for {machine}")
    tag = ["--remove", "--platform-tag", f"manylinux_{OLDEST_LIBC}_{machine}"]
    run_to_end([python, "-m", "wheel", "tags", *tag, *map(str, folder.glob("*.whl"))], purpose="naming the wheel")
    (wheel,) = folder.glob("*.whl")
    return wheel


def copy_sources(folder: Path) -> Path:
    """Copy what the project is built from, because a build leaves files beside its sources.

    Links are kept, and nothing that an earlier build has made is copied.
    """
    folder.mkdir(parents=True)
    made = shutil.ignore_patterns("__pycache__", "*.so", "*.egg-info")
    for name in _SOURCES:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, folder / name, symlinks=True, ignore=made)
        else:
            shutil.copy(ROOT / name, folder)
    return folder


def _committed() -> str:
    """Return the time of the last commit, which all files of a wheel have."""
    return (
        os.environ.get("SOURCE_DATE_EPOCH")
        or run_to_end(["git", "-C", str(ROOT), "log", "-1", "--format=%ct"], purpose="reading the last commit").strip()
    )


if __name__ == "__main__":
    make_release(Path(sys.argv[1]))
