"""Read the tokens of a running process again, on SIGHUP."""

import asyncio
import logging
import signal
from collections.abc import Callable

from nearstream.workers.config.settings import Settings, SettingsError, load

log = logging.getLogger(__name__)


def reload_on_hangup(loop: asyncio.AbstractEventLoop, take: Callable[[Settings], None]) -> None:
    """Let SIGHUP read the settings again, from which `take` takes the tokens.

    Where they do not fit, the log says why, and the former tokens stay.
    """

    def reload() -> None:
        try:
            take(load())
        except SettingsError as error:
            log.error("SIGHUP: the former tokens stay: %s", error)  # noqa: TRY400 - the message says all
        else:
            log.info("SIGHUP: the tokens were read again")

    loop.add_signal_handler(signal.SIGHUP, reload)
