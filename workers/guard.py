"""A thread that ends a worker which does not end itself."""

import faulthandler
import logging
import os
import threading
import time
from collections.abc import Callable

_TICK_SECONDS = 0.5

log = logging.getLogger(__name__)


def guard_stop(stopping: Callable[[], bool], in_outage: Callable[[], bool], limit_seconds: float) -> None:
    """Exits the process with 1 when `stopping()` has been true for `limit_seconds`; in an outage at once.

    Faust waits without end for a record that is never acknowledged, as one is in an outage. Nothing
    unacknowledged is ever committed, so a hard exit loses nothing.
    """
    threading.Thread(target=_watch, args=(stopping, in_outage, limit_seconds), name="guard", daemon=True).start()


def _watch(stopping: Callable[[], bool], in_outage: Callable[[], bool], limit_seconds: float) -> None:
    since: float | None = None
    while True:
        time.sleep(_TICK_SECONDS)
        if not stopping():
            continue
        if in_outage():
            log.warning("stopped in an outage: what was not acknowledged comes again")
            os._exit(1)
        since = since or time.monotonic()
        if time.monotonic() - since > limit_seconds:
            log.critical("did not stop within %g s: ending now, nothing unacknowledged is committed", limit_seconds)
            faulthandler.dump_traceback()
            os._exit(1)
