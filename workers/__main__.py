"""The command `nearstream`, from its first moment on."""

import os
import signal
import sys

from workers.exits import Exit


def main() -> int:
    """Runs one command; its exit code (`exits.Exit`)."""
    # While it loads there is nothing to leave in order, only a traceback to spare the user.
    signal.signal(signal.SIGINT, lambda *_: os._exit(Exit.INTERRUPTED))
    # Closed by the caller (`>&-`): nobody listens, yet no socket may take its number.
    sys.stdout = sys.stdout or open(os.devnull, "w")  # noqa: SIM115 - open until the end
    sys.stderr = sys.stderr or open(os.devnull, "w")  # noqa: SIM115 - the same
    from workers import cli

    return cli.main()


if __name__ == "__main__":
    sys.exit(main())
