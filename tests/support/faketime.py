"""Another clock for one process, set below Python."""

import importlib.util
import platform
from collections.abc import Iterator
from pathlib import Path

from tests.devstack.server import StackUnavailableError

LIBRARY = "libfaketime.so.1"


def clock_ahead(seconds: int) -> dict[str, str]:
    """Return variables that put a process's clock ahead of ours.

    Its monotonic clock stays right. C code sees the changed clock too, such as the code that dates records to send.

    Args:
        seconds: How far. Below 0: the clock is behind.

    Raises:
        StackUnavailableError: libfaketime is not on this machine.
    """
    library = next((path for path in _places() if path.is_file()), None)
    if library is None:
        raise StackUnavailableError(f"no {LIBRARY}: install the package libfaketime of PyPI, or that of Debian")
    return {
        "LD_PRELOAD": str(library),
        "FAKETIME": f"{seconds:+d}",
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        "FAKETIME_FORCE_MONOTONIC_FIX": "0",  # otherwise waits for the interpreter's lock end at once and repeat
        "NO_FAKE_STAT": "1",  # otherwise the time of every file differs, and Python recompiles each module
    }


def _places() -> Iterator[Path]:
    package = importlib.util.find_spec("libfaketime")
    if package is not None and package.origin is not None and platform.machine() == "x86_64":
        yield Path(package.origin).parent / "vendor" / "libfaketime" / "src" / LIBRARY
    yield from Path("/usr/lib").glob(f"*/faketime/{LIBRARY}")
