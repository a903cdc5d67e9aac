"""Log at most once a minute what would otherwise be a line for each request."""

import asyncio
import logging
from dataclasses import dataclass, field

_PAUSE_SECONDS = 60.0
_LINES_MAX = 64  # different ones that are remembered


@dataclass(frozen=True)
class RareLog:
    """Logs warnings, each line at most once a minute.

    Attributes:
        log: Where they are logged.
        logged: When each line was logged last, in seconds of the clock of the event loop.
    """

    log: logging.Logger
    logged: dict[str, float] = field(default_factory=dict)

    def warning(self, line: str) -> None:
        """Log a line, unless it was logged within the last minute."""
        now = asyncio.get_running_loop().time()
        if now < self.logged.get(line, -_PAUSE_SECONDS) + _PAUSE_SECONDS:
            return
        if len(self.logged) >= _LINES_MAX:
            self.logged.clear()
        self.logged[line] = now
        self.log.warning("%s", line)
