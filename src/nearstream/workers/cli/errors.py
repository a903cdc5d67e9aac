"""Turn errors that a user can act on into one line and an exit code."""

import errno

import msgspec

from nearstream.workers.config.exit_codes import Exit
from nearstream.workers.config.settings import SettingsError

_NO_SPACE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def exit_code(error: Exception) -> Exit | None:
    """Return the exit code for an expected error, None for a bug."""
    if isinstance(error, SettingsError):
        return Exit.MISCONFIGURED
    if isinstance(error, ConnectionError | TimeoutError):
        return Exit.UNREACHABLE
    if isinstance(error, OSError):
        return Exit.UNWRITABLE if error.errno in _NO_SPACE else Exit.UNREADABLE
    if isinstance(error, msgspec.MsgspecError):
        return Exit.UNREADABLE
    return _service_exit_code(error)


def message(error: Exception) -> str:
    """Return the text of an error, for a system error without its number."""
    if not isinstance(error, OSError) or not error.strerror:
        return str(error)
    return f"{error.filename}: {error.strerror}" if error.filename else error.strerror


def _service_exit_code(error: Exception) -> Exit | None:
    # Imported on use: these modules load numpy and the Kafka client, which `nearstream settings` does not need.
    from nearstream.streams.store.limits import IndexLostError, IndexUnavailableError
    from nearstream.workers.kafka.errors import KafkaError, KafkaUnreachableError, refused

    if isinstance(error, IndexLostError) or refused(error):
        return Exit.MISCONFIGURED
    if isinstance(error, IndexUnavailableError | KafkaUnreachableError | KafkaError):
        return Exit.UNREACHABLE
    return None
