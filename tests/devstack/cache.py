"""Downloads that are kept in a folder of the user, so that nothing of the machine changes."""

import fcntl
import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

from tests.devstack.server import StackUnavailableError

_PART = ".part-"  # in the name of a folder that is being filled


def cache_folder() -> Path:
    """Return the folder of all downloads."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "nearstream"


def cached(
    name: str,
    wanted: str,
    download: Callable[[Path], None],
    check: Callable[[Path], None] = lambda _: None,
) -> Path:
    """Return the folder of this name, which is downloaded once per user, and again if it is broken.

    It is broken if it fails its check, or if a file is gone or has another size than it was downloaded with.
    One process downloads, and others that want a folder of this kind wait for it. The kind is the name up to its first
    dash.

    Args:
        name: name of the folder.
        wanted: what it holds, for messages.
        download: fills a folder that does not exist yet.
        check: raises StackUnavailableError if a folder is broken.

    Raises:
        StackUnavailableError: the folder cannot be written, or what `download` raises.
    """
    cache = cache_folder()
    whole, files = cache / name, cache / f"{name}.files"
    try:
        if not files.exists() or not _is_whole(whole, files, check):
            cache.mkdir(parents=True, exist_ok=True)
            with (cache / f"{name.partition('-')[0]}.lock").open("w") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)
                if not _is_whole(whole, files, check):
                    _remove_left(whole, files)
                    _fill(whole, download)
                    check(whole)
                if not files.exists():
                    _write_list(whole, files)
    except OSError as error:
        raise StackUnavailableError(f"no {wanted}: {error.strerror}: {error.filename}, set XDG_CACHE_HOME") from None
    return whole


def _is_whole(folder: Path, files: Path, check: Callable[[Path], None]) -> bool:
    """Return whether a folder has each file of its list, if there is one, and passes its check."""
    if not folder.exists():
        return False
    try:
        check(folder)
    except StackUnavailableError:
        return False
    return not files.exists() or all(
        _is_there(folder, line) for line in files.read_text(errors="surrogateescape").splitlines()
    )


def _is_there(folder: Path, line: str) -> bool:
    size, _, name = line.partition(" ")
    try:
        return os.lstat(folder / name).st_size == int(size)
    except (OSError, ValueError):
        return False


def _remove_left(whole: Path, files: Path) -> None:
    """Remove a broken folder, and what a process left that was killed while it downloaded."""
    files.unlink(missing_ok=True)
    for folder in (whole, *whole.parent.glob(f"{whole.name}{_PART}*")):
        shutil.rmtree(folder, ignore_errors=True)


def _fill(whole: Path, download: Callable[[Path], None]) -> None:
    """Download into another folder first, so that a folder of the final name is complete."""
    with tempfile.TemporaryDirectory(dir=whole.parent, prefix=f"{whole.name}{_PART}") as folder:
        part = Path(folder) / "whole"
        download(part)
        part.rename(whole)


def _write_list(whole: Path, files: Path) -> None:
    """List the size and the name of each file of a folder, but for what Python compiles anew."""
    lines = (
        f"{os.lstat(os.path.join(folder, name)).st_size} {os.path.relpath(os.path.join(folder, name), whole)}\n"
        for folder, _, names in os.walk(whole)
        for name in names
        if not name.endswith(".pyc")
    )
    part = files.with_suffix(".part")
    part.write_text("".join(lines), errors="surrogateescape")
    part.rename(files)
