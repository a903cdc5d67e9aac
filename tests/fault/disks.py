"""Small disks that a test can fill."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

_MOUNT = ["mount", "-t", "tmpfs", "-o", f"size={8 * 1024 * 1024}", "tmpfs"]
_UNMOUNT = ["umount", "--lazy"]


@contextmanager
def small_disk(folder: Path) -> Iterator[None]:
    """Mount a disk of a few MiB at this folder.

    Without the permission to mount, the test is skipped with the system's message.
    """
    folder.mkdir(parents=True)
    mounted = subprocess.run(
        [*_MOUNT, folder],
        capture_output=True,
        text=True,
        check=False,
    )
    if mounted.returncode:
        pytest.skip(f"no disk of its own: {mounted.stderr.strip()}")
    try:
        yield
    finally:
        subprocess.run([*_UNMOUNT, folder], check=True)


@contextmanager
def filled(folder: Path) -> Iterator[None]:
    """Fill this disk until the end of the block."""
    ballast = folder / "ballast"
    free = os.statvfs(folder)
    try:
        ballast.write_bytes(b"\1" * (free.f_bavail * free.f_frsize))
        yield
    finally:
        ballast.unlink()
