"""The command line."""

import argparse
import errno
import logging
import os
import signal
import sys
import warnings
from collections.abc import Sequence

import msgspec

from streams.index import IndexLostError, IndexUnavailableError
from workers.arguments import Command, parser
from workers.exits import Exit
from workers.kafka_tools import KafkaError, KafkaUnreachableError, refused
from workers.settings import SettingsError, load

_TOLD = (
    SettingsError,
    IndexLostError,
    IndexUnavailableError,
    KafkaUnreachableError,
    KafkaError,
    OSError,
    msgspec.MsgspecError,
)
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command; its exit code (`exits.Exit`)."""
    try:
        try:
            return _answered(parser().parse_args(arguments))
        finally:
            sys.stdout.flush()  # at exit it would be too late to say that it failed
    except BrokenPipeError:
        _write_no_more()  # the reader has seen enough
        return Exit.OK
    except _TOLD as error:
        sys.stderr.write(f"nearstream: {_words(error)}\n")
        code = _code(error)
        if code == Exit.UNWRITABLE:
            _write_no_more()
        return code
    except KeyboardInterrupt:
        return Exit.INTERRUPTED


def _answered(options: argparse.Namespace) -> int:
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format="%(levelname)s: %(message)s")
    logging.getLogger("aiokafka").setLevel(logging.CRITICAL)
    run: Command = options.run
    # asyncio's own handler only cancels a task, and reading a file never hears of it.
    signal.signal(signal.SIGINT, _interrupt)
    return run(load(), options)


def _interrupt(*_: object) -> None:
    # What is under way is left as it is: asyncio would tell of each piece.
    logging.getLogger("asyncio").setLevel(logging.CRITICAL + 1)
    warnings.simplefilter("ignore", RuntimeWarning)
    raise KeyboardInterrupt


def _write_no_more() -> None:
    """What is still to be written would fail again at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _words(error: Exception) -> str:
    """What the error says, without the number of the system's."""
    if not isinstance(error, OSError) or not error.strerror:
        return str(error)
    return f"{error.filename}: {error.strerror}" if error.filename else error.strerror


def _code(error: Exception) -> Exit:
    if isinstance(error, SettingsError | IndexLostError) or refused(error):
        return Exit.MISCONFIGURED
    if isinstance(error, KafkaUnreachableError | IndexUnavailableError | KafkaError | ConnectionError | TimeoutError):
        return Exit.UNREACHABLE
    if isinstance(error, OSError) and error.errno in _NO_ROOM:
        return Exit.UNWRITABLE
    return Exit.UNREADABLE
