"""Show on stderr what an installation does: its lines, and a line for each long silence."""

import os
import select
import sys
import time

SILENT_SECONDS = float(os.environ.get("SILENT_SECONDS", "15"))
_COLUMNS = 110


def main() -> None:
    """Copy standard input to stderr line by line until it ends."""
    began, waiting = time.monotonic(), b""
    while True:
        if not select.select([0], [], [], SILENT_SECONDS)[0]:
            _show(f"still at it after {time.monotonic() - began:.0f} s")
            continue
        piece = os.read(0, 65_536)
        *lines, waiting = (waiting + piece).split(b"\n")
        for line in [*lines, *([waiting] if waiting and not piece else [])]:
            if b"already satisfied" not in line:
                _show(line.decode(errors="replace")[:_COLUMNS])
        if not piece:
            return


def _show(line: str) -> None:
    sys.stderr.write(f"  {line}\n")
    sys.stderr.flush()


if __name__ == "__main__":
    main()
