"""Downloads that are kept in a folder of the user, so that nothing of the machine changes."""

import fcntl
import os
import shutil
from collections.abc import Callable
from pathlib import Path

from tests.devstack.server import StackUnavailableError


def cache_folder() -> Path:
    """Return the folder of all downloads."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "nearstream"


def cached(
    name: str,
    wanted: str,
    download: Callable[[Path], None],
    check: Callable[[Path], None] = lambda _: None,
) -> Path:
    """Return the folder of this name, which is downloaded once per user, and again if it fails its check.

    It is filled under another name, so a folder of this name is complete. One process downloads, and others that want
    a folder of this kind wait for it. The kind is the name up to its first dash.

    Args:
        name: name of the folder.
        wanted: what it holds, for messages.
        download: fills a folder that does not exist yet.
        check: raises StackUnavailableError if a folder is broken.

    Raises:
        StackUnavailableError: the folder cannot be written, or what `download` raises.
    """
    cache = cache_folder()
    whole = cache / name
    try:
        if not _is_whole(whole, check):
            cache.mkdir(parents=True, exist_ok=True)
            with (cache / f"{name.partition('-')[0]}.lock").open("w") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)
                if not _is_whole(whole, check):
                    _fill(whole, download)
                    check(whole)
    except OSError as error:
        raise StackUnavailableError(f"no {wanted}: {error.strerror}: {error.filename}, set XDG_CACHE_HOME") from None
    return whole


def _is_whole(folder: Path, check: Callable[[Path], None]) -> bool:
    if not folder.exists():
        return False
    try:
        check(folder)
    except StackUnavailableError:
        return False
    return True


def _fill(whole: Path, download: Callable[[Path], None]) -> None:
    """Download in place of what is there, and of what a process left that was killed while it downloaded."""
    part = whole.with_name(f"{whole.name}.part")
    for folder in (whole, part):
        shutil.rmtree(folder, ignore_errors=True)
    download(part)
    part.rename(whole)
