"""Run one command of the command line.

Nothing that a command needs is imported before the command is chosen, so that help, the version and the settings
are shown without loading numpy, the Redis client or the Kafka client.
"""

import argparse
import contextlib
import gc
import io
import logging
import os
import signal
import sys
import warnings
from collections.abc import Callable, Sequence
from pkgutil import resolve_name

from nearstream.workers.cli import logs
from nearstream.workers.cli.errors import exit_code, message
from nearstream.workers.cli.parser import FIRST_STEPS, create_parser
from nearstream.workers.config.exit_codes import Exit
from nearstream.workers.config.settings import Settings, load
from nearstream.workers.operations.terminal import print_message

_HINT = " (`nearstream doctor` says what to do)"

Command = Callable[[Settings, argparse.Namespace], Exit]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code, one of `Exit`."""
    try:
        try:
            return _run(_parsed(arguments))
        finally:
            sys.stdout.flush()  # A failure at interpreter exit could no longer be reported.
    except BrokenPipeError:
        _discard_output()  # The reader, for example `head`, has closed the pipe on purpose.
        return Exit.OK
    except KeyboardInterrupt:
        return Exit.INTERRUPTED
    except Exception as error:
        code = exit_code(error)
        if code is None:
            raise
        logs.report_failure(message(error) + (_HINT if code == Exit.UNREACHABLE else ""))
        if code == Exit.UNWRITABLE:
            _discard_output()
        return code


def command_function(name: str) -> Command:
    """Import the function of a command, named as `module:function` in this package."""
    function: Command = resolve_name(f"nearstream.workers.cli.{name}")
    return function


def _parsed(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Parse the command line, or show the first steps where it names no command, and exit."""
    parser = create_parser()
    given = sys.argv[1:] if arguments is None else arguments
    complaint = io.StringIO()  # argparse would quote arguments as they are
    try:
        with contextlib.redirect_stderr(complaint):
            if given:
                return parser.parse_args(given)
            complaint.write(f"{FIRST_STEPS}\n")
            sys.exit(Exit.USAGE)
    finally:
        for line in complaint.getvalue().split("\n")[:-1]:
            print_message(line)


def _run(options: argparse.Namespace) -> int:
    logs.configure(os.environ.get("NEARSTREAM_LOG_FORMAT", "text"))  # for settings that cannot be loaded
    settings = load()
    logs.configure(settings.log_format, settings.log_level or "warning")
    command = command_function(options.command)
    gc.enable()
    # asyncio's own handler only cancels a task, which does not interrupt a blocking read of a file.
    signal.signal(signal.SIGINT, _interrupt)
    return command(settings, options)


def _interrupt(*_: object) -> None:
    # Silence asyncio and unawaited coroutines, which would log every task that Ctrl-C leaves unfinished.
    logging.getLogger("asyncio").setLevel(logging.CRITICAL + 1)
    warnings.simplefilter("ignore", RuntimeWarning)
    raise KeyboardInterrupt


def _discard_output() -> None:
    """Redirect stdout to the null device, because flushing it at interpreter exit would fail again."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
