"""The topology, on one screen.

documents ──▶ sign ──▶ signatures ──▶ match ──▶ near-duplicates, containments, versions, overlaps
               │                        │
               └──────▶ dead-letters ◀──┘            match ◀──▶ index (Redis)
"""

import asyncio
import logging
import sys
from time import monotonic
from typing import Any, NoReturn

import faust
from faust.types import StreamT
from mode.supervisors import CrashingSupervisor

from schemas.topics import DOCUMENTS, SIGNATURES
from workers import metrics
from workers.delivery import Delivery, Step
from workers.guard import Guard, rules, start_guard
from workers.health import Health
from workers.kafka_security import tls_context, uses_sasl
from workers.kafka_tools import SEND_MAX_BYTES, SESSION_SECONDS, refused
from workers.limits import Limits
from workers.matching import Matching
from workers.outages import Patience
from workers.settings import Settings, SettingsError
from workers.signing import Signing
from workers.transport import Transport

SIGN_BATCH = 100
MATCH_BATCH = 32

log = logging.getLogger("nearstream.app")


def create_app(
    settings: Settings, datadir: str, health: Health, signing: Signing | None, matching: Matching | None
) -> faust.App:
    """The Faust app of one worker; a role that is None has no agent here."""
    app = faust.App(**_conf(settings), datadir=datadir)
    app.transport = Transport(app.conf.broker_consumer, app)
    limits = Limits(settings.dead_letter_max_consecutive, settings.dead_letter_max_ratio)
    delivery = Delivery(app, health, limits, Patience(health, settings.outage_seconds))
    documents, signatures = (settings.topic_prefix + topic.name for topic in (DOCUMENTS, SIGNATURES))

    if signing is not None:
        to_sign = Step("sign", SIGN_BATCH, signing.decide, metrics.count_signed)

        @app.agent(app.topic(documents), name="sign", concurrency=1)
        async def sign(_: StreamT[bytes]) -> None:
            await delivery.run(documents, to_sign)

    if matching is not None:
        to_match = Step("match", MATCH_BATCH, matching.decide, metrics.count_matched, matching)

        @app.agent(app.topic(signatures), name="match", concurrency=1)
        async def match(_: StreamT[bytes]) -> None:
            await delivery.run(signatures, to_match)

        @app.task  # type: ignore[untyped-decorator]
        async def keep_index_whole() -> None:
            await delivery.keep_whole(to_match, signatures)

        @app.on_partitions_revoked.connect()
        async def forget(*_: Any, **__: Any) -> None:  # noqa: ANN401 - Faust's signal
            matching.forget_positions()

    return app


def serve(app: faust.App, health: Health, loop: asyncio.AbstractEventLoop, stop_seconds: float) -> NoReturn:
    """Runs until a signal (exit code 0; 65 in a hold) or a crash (1).

    Raises:
        SettingsError: A server does not let us do what must be done.
    """
    _note_rebalances(app, health)
    ticking = loop.create_task(_tick(health))
    worker = faust.Worker(app, loop=loop, quiet=True, override_logging=False, stdout=sys.stderr)
    worker.spinner = None  # a log is no terminal

    def stopping() -> bool:
        return bool(worker.should_stop)

    start_guard(Guard(rules(health, lambda: app.rebalancing, stopping, stop_seconds)), health, stopping)
    try:
        worker.execute_from_commandline()  # leaves by SystemExit
    except SystemExit:
        _raise_refusal(worker.crash_reason)
        if worker.crash_reason is not None:
            log.error("stopped by a crash: %r", worker.crash_reason)  # noqa: TRY400 - its stack is Faust's
        raise
    except Exception as error:  # noqa: BLE001 - the outermost loop; the cause was logged where it arose
        _raise_refusal(error)
        sys.exit(f"nearstream: stopped by a crash: {error!r}")
    except asyncio.CancelledError:  # what a crash elsewhere does to an agent that waits
        _raise_refusal(worker.crash_reason)
        sys.exit(1)
    finally:
        ticking.cancel()


def _raise_refusal(crash: BaseException | None) -> None:
    """Raises a crash that is a matter of settings: a right was taken away, a password changed, a topic deleted."""
    if isinstance(crash, SettingsError):
        raise crash from None
    if crash is not None and refused(crash):
        raise SettingsError(f"NEARSTREAM_KAFKA_USERNAME: READ is refused: {crash}") from None


def _note_rebalances(app: faust.App, health: Health) -> None:
    """One line in the log for each rebalance."""

    @app.on_partitions_assigned.connect()
    async def assigned(_: faust.App, assigned: Any, **__: Any) -> None:  # noqa: ANN401 - Faust's signal
        health.assigned = frozenset((place.topic, place.partition) for place in assigned)
        metrics.REBALANCES.inc()
        log.info("assigned: %s", ", ".join(f"{topic} {part}" for topic, part in sorted(health.assigned)) or "none")

    @app.on_partitions_revoked.connect()
    async def revoked(_: faust.App, revoked: Any, **__: Any) -> None:  # noqa: ANN401 - Faust's signal
        health.assigned = None
        log.info("revoked: %d partitions", len(revoked))


async def _tick(health: Health) -> None:
    """Shows the guard that the event loop turns."""
    while True:
        health.ticked = monotonic()
        await asyncio.sleep(1.0)


def _credentials(settings: Settings) -> faust.SASLCredentials | faust.SSLCredentials | None:
    """What all our clients of Kafka show and trust, in Faust's words."""
    context = tls_context(settings)
    if uses_sasl(settings):
        return faust.SASLCredentials(
            username=settings.kafka_username,
            password=settings.kafka_password,
            mechanism=settings.kafka_sasl_mechanism,
            ssl_context=context,
        )
    return faust.SSLCredentials(context) if context else None


def _conf(settings: Settings) -> dict[str, Any]:
    """Faust's settings; each that differs from its default guards against something seen to go wrong."""
    return {
        "id": settings.group,
        "broker": [f"kafka://{address}" for address in settings.kafka.split(",")],
        "broker_credentials": _credentials(settings),
        "autodiscover": False,
        "processing_guarantee": "at_least_once",
        "agent_supervisor": CrashingSupervisor,
        "table_standby_replicas": 0,  # else Faust's own assignor serves even without tables
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
        "broker_request_timeout": 40.0,  # must not be below the session timeout
        "producer_request_timeout": 40.0,
        # Off: a batch paused beyond it leaves the group for ever without a word.
        "broker_max_poll_interval": 604_800.0,
        "consumer_auto_offset_reset": "earliest",
        "consumer_group_instance_id": settings.group_instance or None,
        "producer_acks": -1,
        "producer_linger": 0.0,
        # The broker holds a whole batch to the limit of its topic, and signatures have the smallest.
        "producer_max_batch_size": SIGNATURES.max_message_bytes // 2,
        "producer_max_request_size": SEND_MAX_BYTES,
        "producer_compression_type": settings.kafka_compression or None,
    }
