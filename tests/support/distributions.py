"""Build the distributions of the project without network."""

import os
import re
import shutil
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
README_EXAMPLE = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL)[0]
_SOURCES = ("pyproject.toml", "MANIFEST.in", "build_backend", "README.md", "LICENSE", "src", "examples")
_SETUPTOOLS_MIN = 77
_HOOK = "import sys; sys.path.insert(0, 'build_backend'); import compiled; getattr(compiled, sys.argv[1])(sys.argv[2])"


def run(command: list[str], folder: Path, exit_code: int = 0, within_seconds: float = 120, **variables: str) -> str:
    """Run a command in a folder, expect its exit code and return what it prints.

    The variables are added to the environment, without those of nearstream and Python that are set here.
    """
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("NEARSTREAM_", "PYTHON"))}
    done = subprocess.run(
        command,
        cwd=folder,
        env={**inherited, **variables},
        capture_output=True,
        text=True,
        timeout=within_seconds,
        check=False,
    )
    assert done.returncode == exit_code, done.stdout + done.stderr
    return done.stdout


def copy_sources(folder: Path) -> Path:
    """Copy what the project is built from, because a build leaves files beside its sources.

    Links are kept, and nothing that an earlier build has made is copied.
    """
    folder.mkdir(parents=True)
    generated = shutil.ignore_patterns("__pycache__", "*.so", "*.egg-info")
    for name in _SOURCES:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, folder / name, symlinks=True, ignore=generated)
        else:
            shutil.copy(ROOT / name, folder)
    return folder


def build(hook: str, sources: Path, target: Path, **variables: str) -> Path:
    """Call a build hook and return the distribution that it makes.

    This is what pip does (PEP 517, PEP 660), without its search for what is installed already.
    """
    # Importing setuptools here would replace distutils, which fails if a test has imported that already.
    if int(version("setuptools").partition(".")[0]) < _SETUPTOOLS_MIN:
        pytest.skip(f"a build without network needs setuptools {_SETUPTOOLS_MIN} or newer")
    target.mkdir()
    run([sys.executable, "-c", _HOOK, hook, str(target)], sources, **variables)
    (distribution,) = target.iterdir()
    return distribution
