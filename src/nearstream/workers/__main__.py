"""The entry point of the command `nearstream`."""

import gc
import os
import signal
import sys

from nearstream.workers.config.exit_codes import Exit


def main() -> int:
    """Run one command and return its exit code (see `exit_codes.Exit`)."""
    # Until the imports below are done there is nothing to clean up, so Ctrl-C exits at once without a traceback.
    signal.signal(signal.SIGINT, lambda *_: os._exit(Exit.INTERRUPTED))
    if sys.argv[1:2] and sys.argv[1] in ("worker", "serve", "milter"):  # which read their tokens again, once they run
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
    if sys.argv[1:2] == ["worker"]:  # which serves until it is asked to stop, so that is no failure
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: os._exit(Exit.OK))
    # If the caller closed a stream (`>&-`), open it again: otherwise a socket could get its file number.
    sys.stdout = sys.stdout or open(os.devnull, "w")  # noqa: SIM115 - open until the process ends
    sys.stderr = sys.stderr or open(os.devnull, "w")  # noqa: SIM115 - open until the process ends
    gc.disable()  # until the command is imported, since collections take a sixth of that time and find nothing
    from nearstream.workers.cli import main

    return main.main()


if __name__ == "__main__":
    sys.exit(main())
