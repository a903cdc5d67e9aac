"""The topology, on one screen.

documents ──▶ sign ──▶ signatures ──▶ match ──▶ verdicts, near-duplicates, containments, versions, overlaps
               │                        │
               └──────▶ dead-letters ◀──┘            match ◀──▶ index (Redis)

verdicts ──▶ decide ──▶ decisions                    decide ◀──▶ decisions (Redis)
verdicts, dead-letters ──▶ alert ──▶ alerts          alert ◀──▶ counts (Redis)
"""

from functools import partial
from typing import Any

import faust
from faust.types import StreamT

from nearstream.schemas.topics.table import DEAD_LETTERS, DOCUMENTS, SIGNATURES, VERDICTS
from nearstream.workers.config.settings import Settings
from nearstream.workers.monitoring import metrics
from nearstream.workers.monitoring.health import Health
from nearstream.workers.pipeline.alert import Alerting
from nearstream.workers.pipeline.dead_letters import dead_letter_limit
from nearstream.workers.pipeline.decide import Deciding
from nearstream.workers.pipeline.delivery import Delivery
from nearstream.workers.pipeline.faust_consumer import Transport
from nearstream.workers.pipeline.faust_runtime import faust_settings
from nearstream.workers.pipeline.match import Matching
from nearstream.workers.pipeline.retry import RetryPolicy
from nearstream.workers.pipeline.sign import Signing
from nearstream.workers.pipeline.step import Lanes, Step

SIGN_BATCH = 100
MATCH_BATCH = 256  # where a worker is behind: the fixed cost of a batch is half that of a document without copies
MATCH_LANES = 2  # batches in work: while one waits for the index or for Kafka, the other one is compared
DECIDE_BATCH = 100
ALERT_BATCH = 200
ALERT_END_SECONDS = 2.0  # between two looks for alerts that end


def _add_signing(app: faust.App, documents: str, delivery: Delivery, signing: Signing) -> None:
    to_sign = Step("sign", SIGN_BATCH, signing.decide, metrics.count_signed)

    @app.agent(app.topic(documents), name="sign", concurrency=1)
    async def sign(_: StreamT[bytes]) -> None:
        await delivery.run(documents, to_sign)


def _add_matching(app: faust.App, signatures: str, delivery: Delivery, matching: Matching) -> None:
    to_match = Step("match", MATCH_BATCH, matching.decide, metrics.count_matched, matching, Lanes(MATCH_LANES))

    @app.agent(app.topic(signatures), name="match", concurrency=1)
    async def match(_: StreamT[bytes]) -> None:
        await delivery.run(signatures, to_match)

    @app.task  # type: ignore[untyped-decorator]
    async def keep_index_whole() -> None:
        await delivery.keep_whole(to_match, signatures)

    @app.on_partitions_revoked.connect()
    async def forget(*_: Any, **__: Any) -> None:  # noqa: ANN401 - Faust's signal
        matching.forget_positions()


def _add_deciding(app: faust.App, verdicts: str, delivery: Delivery, deciding: Deciding) -> None:
    to_decide = Step("decide", DECIDE_BATCH, deciding.decide, metrics.count_decided)

    @app.agent(app.topic(verdicts), name="decide", concurrency=1)
    async def decide(_: StreamT[bytes]) -> None:
        await delivery.run(verdicts, to_decide)


def _add_alerting(app: faust.App, verdicts: str, dead_letters: str, delivery: Delivery, alerting: Alerting) -> None:
    to_alert = Step("alert", ALERT_BATCH, alerting.decide, alerting.after_sending)
    to_count = Step("count_letters", ALERT_BATCH, alerting.count_letters, alerting.after_sending)

    @app.agent(app.topic(verdicts), name="alert", concurrency=1)
    async def alert(_: StreamT[bytes]) -> None:
        await delivery.run(verdicts, to_alert)

    @app.agent(app.topic(dead_letters), name="count_letters", concurrency=1)
    async def count_letters(_: StreamT[bytes]) -> None:
        await delivery.run(dead_letters, to_count)

    @app.task  # type: ignore[untyped-decorator]
    async def end_alerts() -> None:
        await delivery.repeat("end_alerts", ALERT_END_SECONDS, partial(alerting.end_quiet, delivery.health))


def _create_nothing() -> None:
    pass


def create_app(
    settings: Settings,
    health: Health,
    signing: Signing | None = None,
    matching: Matching | None = None,
    deciding: Deciding | None = None,
    alerting: Alerting | None = None,
) -> faust.App:
    """Create the Faust app of one worker, with the agents that it is given."""
    app = faust.App(**faust_settings(settings))
    app._create_directories = _create_nothing  # type: ignore[method-assign] # they are for tables, and we have none
    app.transport = Transport(app.conf.broker_consumer, app)
    limits = dead_letter_limit(settings.dead_letter_max_ratio, health.drained_ms)
    delivery = Delivery(app, health, limits, RetryPolicy(health, settings.outage_seconds))
    documents, signatures, verdicts, dead_letters = (
        settings.topic_prefix + topic.name for topic in (DOCUMENTS, SIGNATURES, VERDICTS, DEAD_LETTERS)
    )

    if signing is not None:
        _add_signing(app, documents, delivery, signing)
    if matching is not None:
        _add_matching(app, signatures, delivery, matching)
    if deciding is not None:
        _add_deciding(app, verdicts, delivery, deciding)
    if alerting is not None:
        _add_alerting(app, verdicts, dead_letters, delivery, alerting)
    return app
