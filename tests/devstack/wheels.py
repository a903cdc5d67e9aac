"""Programs from wheels, for machines that have none, or one that is too old."""

import hashlib
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from tests.devstack.cache import cached
from tests.devstack.server import run_to_end, say


def on_path(program: str, asked: str, at_least: tuple[int, int]) -> str | None:
    """Return the path of a program, or None if it is missing or too old.

    Args:
        program: Its name.
        asked: The argument for which it prints its version.
        at_least: Its oldest version that will do.
    """
    path = shutil.which(program)
    if path is None:
        return None
    told = subprocess.run([path, asked], capture_output=True, text=True, check=False).stdout
    return path if tuple(map(int, re.findall(r"\d+", told)[:2])) >= at_least else None


def python_environment(*requirements: str) -> Path:
    """Return the folder of a virtual environment with these packages and no others, which is made once per user."""
    key = hashlib.sha256(" ".join(requirements).encode()).hexdigest()[:12]
    return cached(
        f"python-{sys.version_info.minor}-{key}", ", ".join(requirements), partial(make_environment, requirements)
    )


def packages_of(environment: Path) -> Path:
    """Return the folder of the packages of an environment."""
    (folder,) = environment.glob("lib/python*/site-packages")
    return folder


def make_environment(requirements: Sequence[str], folder: Path) -> None:
    """Make a virtual environment with these packages, what they need, and nothing else, not even pip."""
    wanted = ", ".join(requirements)
    say(f"downloading {wanted} from PyPI")
    run_to_end([sys.executable, "-m", "venv", "--without-pip", str(folder)], purpose="making a virtual environment")
    pip = [sys.executable, "-m", "pip", "--python", str(folder / "bin/python"), "install", "--quiet"]
    run_to_end([*pip, "--disable-pip-version-check", *requirements], purpose=f"downloading {wanted}")
