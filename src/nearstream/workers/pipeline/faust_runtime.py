"""Run a worker process on Faust: settings, main loop, signals."""

import asyncio
import logging
import sys
from time import monotonic
from typing import Any, NoReturn

import faust
from mode.supervisors import CrashingSupervisor

from nearstream.schemas.topics.table import SIGNATURES
from nearstream.workers.config.exit_codes import Exit
from nearstream.workers.config.settings import Settings, SettingsError
from nearstream.workers.kafka.client import SEND_MAX_BYTES, SESSION_SECONDS
from nearstream.workers.kafka.errors import refusal_of_reading, refused
from nearstream.workers.kafka.partitioning import choose_partition
from nearstream.workers.kafka.security import tls_context, tokens, uses_sasl
from nearstream.workers.monitoring import metrics
from nearstream.workers.monitoring.health import Health
from nearstream.workers.monitoring.watchdog import Watchdog, rules, start_watchdog
from nearstream.workers.pipeline.retry import is_outage

log = logging.getLogger(__name__)

_MOMENT_SECONDS = 0.1  # for what ends by itself once all services have stopped


class FirstCrashWorker(faust.Worker):
    """Faust's worker, which remembers the first error that made it crash.

    An error that settings can remedy replaces one that they cannot. A crash ends the consumer's thread, so whatever
    waits for that thread fails too, and mode would remember the last of these errors.

    Where nothing crashed, it ends as soon as its services and tasks have. mode would wait two seconds more: one for
    tasks to end by themselves, which some never do, and one for those that it has cancelled, even if there are none.
    """

    def _crash(self, reason: BaseException) -> None:
        known = self.crash_reason
        super()._crash(reason if known is None else max(known, reason, key=_weight))

    def _gather_all(self) -> None:
        if self.crash_reason is not None:
            super()._gather_all()
            return
        self.loop.run_until_complete(asyncio.sleep(_MOMENT_SECONDS))
        for task in asyncio.all_tasks(self.loop):
            task.cancel()

    async def _sentinel_task(self) -> None:
        if self.crash_reason is not None:
            await super()._sentinel_task()
        elif left := asyncio.all_tasks() - {asyncio.current_task()}:
            await asyncio.wait(left, timeout=1.0)


def _weight(reason: BaseException) -> int:
    """Return the rank of an error as the reason of a crash: 2 if settings can remedy it, else 1, a cancellation 0."""
    if isinstance(reason, asyncio.CancelledError):
        return 0
    return 1 if _refusal(reason) is None else 2


def serve(app: faust.App, health: Health, loop: asyncio.AbstractEventLoop, stop_seconds: float) -> NoReturn:
    """Run the worker until a signal or a crash ends it.

    The exit code is 0 after a signal, 65 if the worker had halted, 1 after a crash.
    """
    _log_rebalances(app, health)
    ticking = loop.create_task(_tick(health))
    worker = FirstCrashWorker(app, loop=loop, quiet=True, override_logging=False, stdout=sys.stderr)
    worker.spinner = None  # It would write control characters of a terminal into the log.

    def stopping() -> bool:
        return bool(worker.should_stop)

    def asked() -> bool:
        return worker._signal_stop_time is not None

    def end_code() -> Exit:
        return _end_code(worker.crash_reason or _start_error(worker._starting_fut), asked())

    watchdog = Watchdog(rules(health, lambda: app.rebalancing, stopping, stop_seconds))
    start_watchdog(watchdog, health, stopping, end_code, loop)
    try:
        worker.execute_from_commandline()  # ends with SystemExit
    except SystemExit as ended:
        # mode exits while it handles an error that came before Faust's app ran, such as that of an unreachable broker.
        crash = worker.crash_reason or ended.__context__
        if crash is None:
            raise
        _exit_after(crash, asked())
    except Exception as error:  # noqa: BLE001 - the outermost loop
        _exit_after(error, asked())
    except asyncio.CancelledError:  # A crash elsewhere cancels an agent that waits.
        _exit_after(worker.crash_reason, asked())
    finally:
        ticking.cancel()


def _exit_after(crash: BaseException | None, asked: bool) -> NoReturn:
    """Exit as the crash demands, or raise a `SettingsError` if settings can remedy it."""
    refusal = _refusal(crash)
    if refusal is not None:
        raise refusal from None
    sys.exit(_end_code(crash, asked))


def _end_code(crash: BaseException | None, asked: bool) -> Exit:
    """Return the exit code after the crash, and log the crash.

    It is 0 if the worker was asked to stop and only an outage came between.
    """
    refusal = _refusal(crash)
    if refusal is not None:
        log.critical("%s", refusal)
        return Exit.MISCONFIGURED
    if asked and (crash is None or is_outage(crash)):
        return Exit.OK
    if crash is not None:
        log.error("stopped by a crash: %r", crash)
    return Exit.NO


def _start_error(starting: asyncio.Future[Any] | None) -> BaseException | None:
    """Return the error with which the worker's start ended, if any.

    mode does not keep an error from before Faust's app ran as the reason of the crash.
    """
    return starting.exception() if starting and starting.done() and not starting.cancelled() else None


def _refusal(crash: BaseException | None) -> SettingsError | None:
    """Return a crash that settings can remedy as a `SettingsError`.

    A permission was withdrawn, a password changed, or a topic deleted.
    """
    if isinstance(crash, SettingsError):
        return crash
    if crash is not None and refused(crash):
        return refusal_of_reading(crash)
    return None


def _log_rebalances(app: faust.App, health: Health) -> None:
    @app.on_partitions_assigned.connect()
    async def assigned(_: faust.App, assigned: Any, **__: Any) -> None:  # noqa: ANN401 - Faust's signal
        health.assigned = frozenset((partition.topic, partition.partition) for partition in assigned)
        metrics.REBALANCES.inc()
        log.info("assigned: %s", ", ".join(f"{topic} {part}" for topic, part in sorted(health.assigned)) or "none")

    @app.on_partitions_revoked.connect()
    async def revoked(_: faust.App, revoked: Any, **__: Any) -> None:  # noqa: ANN401 - Faust's signal
        health.assigned = None
        log.info("revoked: %d partitions", len(revoked))


async def _tick(health: Health) -> None:
    """Record every second that the event loop runs, for the watchdog."""
    while True:
        health.ticked = monotonic()
        await asyncio.sleep(1.0)


def _credentials(settings: Settings) -> faust.OAuthCredentials | faust.SASLCredentials | faust.SSLCredentials | None:
    context = tls_context(settings)
    provider = tokens(settings)
    if provider is not None:
        return faust.OAuthCredentials(oauth_cb=provider, ssl_context=context)
    if uses_sasl(settings):
        return faust.SASLCredentials(
            username=settings.kafka_username,
            password=settings.kafka_password,
            mechanism=settings.kafka_sasl_mechanism,
            ssl_context=context,
        )
    return faust.SSLCredentials(context) if context else None


def faust_settings(settings: Settings) -> dict[str, Any]:
    """Return the settings for Faust."""
    return {
        "id": settings.group,
        "broker": [f"kafka://{address}" for address in settings.kafka.split(",")],
        "broker_credentials": _credentials(settings),
        "autodiscover": False,
        "processing_guarantee": "at_least_once",
        "agent_supervisor": CrashingSupervisor,
        "table_standby_replicas": 0,  # otherwise Faust uses its own assignor, even without tables
        "topic_allow_declare": False,
        "topic_disable_leader": True,
        "web_enabled": False,
        "worker_redirect_stdouts": False,
        "broker_commit_interval": 0.5,
        "stream_wait_empty": True,
        "consumer_max_fetch_size": SEND_MAX_BYTES,
        "broker_session_timeout": SESSION_SECONDS,
        "broker_heartbeat_interval": SESSION_SECONDS / 3,
        "broker_rebalance_timeout": 60.0,
        "broker_request_timeout": 40.0,  # not allowed to be below the session timeout
        "producer_request_timeout": 40.0,
        # In effect off: a worker that pauses longer, in an outage, would leave the group for good without an error.
        "broker_max_poll_interval": 604_800.0,
        "consumer_auto_offset_reset": "earliest",
        "producer_acks": -1,
        "producer_linger": 0.0,
        # The broker applies the limit of a topic to a whole batch, and `signatures` has the smallest limit.
        "producer_max_batch_size": SIGNATURES.max_message_bytes // 2,
        "producer_max_request_size": SEND_MAX_BYTES,
        "producer_partitioner": choose_partition,  # chooses as the default does, but remembers keys
    }
