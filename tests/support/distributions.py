"""Build the distributions of the project without network."""

import os
import re
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
README_EXAMPLE = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL)[0]
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
