"""Write the log of a command or a worker to stderr."""

import json
import logging
import sys
import threading
from datetime import UTC, datetime
from types import TracebackType

from nearstream.workers.operations.terminal import print_message, printable

COMMAND_LAYOUT = "%(levelname)s: %(message)s"
WORKER_LAYOUT = "%(asctime)s %(levelname)s %(name)s: %(message)s"

ExceptionInfo = tuple[type[BaseException], BaseException, TracebackType | None] | tuple[None, None, None]

log = logging.getLogger("nearstream")


class JsonFormatter(logging.Formatter):
    """Formats a record as one line of JSON in ASCII."""

    def format(self, record: logging.LogRecord) -> str:
        """Return time, level, logger, message, and the exception if there is one."""
        line = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info and record.exc_info[0] is not None:
            line["exception"] = self.formatException(record.exc_info)
        return printable(json.dumps(line))


class TextFormatter(logging.Formatter):
    """Formats a record as lines of text without control characters."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - as logging
        """Return the line."""
        return printable(super().formatMessage(record))

    def formatException(self, ei: ExceptionInfo) -> str:  # noqa: N802 - as logging
        """Return the lines of an exception."""
        return "\n".join(map(printable, super().formatException(ei).split("\n")))


def configure(form: str, level: str = "warning", layout: str = COMMAND_LAYOUT) -> None:
    """Send the log to stderr: `json` for one JSON object a line, else lines of text in a layout.

    Our loggers write from a level on, those of libraries from `warning` on.
    """
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter() if form == "json" else TextFormatter(layout))
    log.setLevel(level.upper())
    at_least_warning = max(log.level, logging.WARNING)
    logging.basicConfig(handlers=[handler], level=at_least_warning, force=True)
    # Faust writes what its consumer and its thread do to the log of the module that extends them.
    logging.getLogger("nearstream.workers.pipeline.faust_consumer").setLevel(at_least_warning)
    # aiokafka would log thousands of lines during a minute without a broker.
    logging.getLogger("aiokafka").setLevel(logging.CRITICAL)
    # Our own log reports a crash, once, and our watchdog what hangs, so that nobody need act on a late timer of Faust.
    for name in ("faust.agents.actor", "faust.worker", "mode.timers"):
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)
    sys.excepthook = _log_crash
    threading.excepthook = _log_crash_of_thread
    if form == "json":
        logging.captureWarnings(capture=True)


def report_failure(text: str) -> None:
    """Write the line with which a failed command ends."""
    if any(isinstance(handler.formatter, JsonFormatter) for handler in logging.getLogger().handlers):
        log.critical(text)
    else:
        print_message(f"nearstream: {text}")


def _log_crash(kind: type[BaseException], error: BaseException, traceback: TracebackType | None) -> None:
    log.critical("crashed", exc_info=(kind, error, traceback))


def _log_crash_of_thread(crash: threading.ExceptHookArgs) -> None:
    if crash.exc_value is not None:
        _log_crash(crash.exc_type, crash.exc_value, crash.exc_traceback)
