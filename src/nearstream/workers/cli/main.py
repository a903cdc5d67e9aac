"""Run one command of the command line.

Nothing that a command needs is imported before the command is chosen, so that the list of commands, the version and
the settings are shown without loading numpy, the Redis client or the Kafka client.
"""

import argparse
import contextlib
import errno
import gc
import io
import logging
import os
import signal
import sys
import warnings
from collections.abc import Sequence

import msgspec

from nearstream.workers.cli import logs
from nearstream.workers.cli.parser import FIRST_STEPS, create_parser
from nearstream.workers.config.exit_codes import Exit, RefusalError
from nearstream.workers.config.settings import SettingsError, load
from nearstream.workers.operations.terminal import print_message

_HINT = " (`nearstream doctor` says what to do. With `serve --index`, ask the API)"
_NO_SPACE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code, one of `Exit`."""
    try:
        try:
            logs.configure(os.environ.get("NEARSTREAM_LOG_FORMAT", "text"))  # until the settings are loaded
            return _run(_parsed(arguments))
        finally:
            sys.stdout.flush()  # A failure at interpreter exit could no longer be reported.
    except BrokenPipeError:
        _discard_output()  # The reader, for example `head`, has closed the pipe on purpose.
        return Exit.OK
    except KeyboardInterrupt:
        return Exit.INTERRUPTED
    except Exception as error:
        code = _exit_code(error)
        if code is None:
            raise
        logs.report_failure(_message(error) + (_HINT if code == Exit.UNREACHABLE else ""))
        if code == Exit.UNWRITABLE:
            _discard_output()
        return code


def _parsed(arguments: Sequence[str] | None) -> argparse.Namespace:
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
    settings = load()
    logs.configure(settings.log_format, settings.log_level or "warning")
    gc.enable()
    # asyncio's own handler only cancels a task, which does not interrupt a blocking read of a file.
    signal.signal(signal.SIGINT, _interrupt)
    exit_code: Exit = options.command(settings, options)
    return exit_code


def _interrupt(*_: object) -> None:
    # Silence asyncio and unawaited coroutines, which would log every task that Ctrl-C leaves unfinished.
    logging.getLogger("asyncio").setLevel(logging.CRITICAL + 1)
    warnings.simplefilter("ignore", RuntimeWarning)
    raise KeyboardInterrupt


def _discard_output() -> None:
    """Redirect stdout to the null device, because flushing it at interpreter exit would fail again."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _exit_code(error: Exception) -> Exit | None:
    if isinstance(error, SettingsError):
        return Exit.MISCONFIGURED
    if isinstance(error, RefusalError):
        return error.exit_code
    if isinstance(error, ConnectionError | TimeoutError):
        return Exit.UNREACHABLE
    if isinstance(error, OSError):
        return Exit.UNWRITABLE if error.errno in _NO_SPACE else Exit.UNREADABLE
    if isinstance(error, msgspec.MsgspecError):
        return Exit.UNREADABLE
    return _service_exit_code(error)


def _message(error: Exception) -> str:
    if not isinstance(error, OSError) or not error.strerror:
        return str(error)
    return f"{error.filename}: {error.strerror}" if error.filename else error.strerror


def _service_exit_code(error: Exception) -> Exit | None:
    # Imported on use: these modules load numpy and the Kafka client, which `nearstream settings` does not need.
    import sqlite3

    from nearstream.streams.store.limits import IndexLostError, IndexUnavailableError
    from nearstream.workers.kafka.errors import KafkaError, KafkaUnreachableError, refused

    if isinstance(error, IndexLostError) or refused(error):
        return Exit.MISCONFIGURED
    if isinstance(error.__cause__, sqlite3.Error):  # of the index in a file, for which there is no room
        return Exit.UNWRITABLE
    if isinstance(error, IndexUnavailableError | KafkaUnreachableError | KafkaError):
        return Exit.UNREACHABLE
    return None
