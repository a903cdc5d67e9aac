"""Run a worker, and obey a signal from its first moment."""

import argparse
import gc
import logging
import os
import signal

from nearstream.workers.cli import logs
from nearstream.workers.config.exit_codes import Exit
from nearstream.workers.config.settings import Settings

log = logging.getLogger(__name__)


def start_worker(settings: Settings, options: argparse.Namespace) -> Exit:
    """Run one worker process until it is stopped."""
    logs.configure(settings.log_format, settings.log_level or "info", logs.WORKER_LAYOUT)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _stop)  # until Faust runs, which has handlers of its own
    # Imported on use: this loads numpy and the clients, which takes a second in which a signal may come too.
    gc.disable()
    from nearstream.workers.cli.worker import run_worker

    gc.enable()
    run_worker(settings, options.role, options.timeout, new_group=options.new_group)
    return Exit.OK


def _stop(number: int, _: object) -> None:
    """Exit at once, which is safe as long as nothing was consumed."""
    try:
        log.info("stopped by %s before it joined the group", signal.Signals(number).name)
    finally:
        os._exit(Exit.OK)
