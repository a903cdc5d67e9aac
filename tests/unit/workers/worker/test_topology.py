"""The settings that Faust gets when a worker is created."""

import asyncio
from typing import Any

from nearstream.schemas.topics.dead_letter import Payload
from nearstream.streams.fingerprints.hashing import HashKey
from nearstream.streams.ingest.defaults import DocumentLimits
from nearstream.streams.matching.matcher import Matcher
from nearstream.streams.signing.scheme import preset
from nearstream.streams.signing.signer import Signer
from nearstream.streams.store.store import local_store
from nearstream.workers.config.alert_rules import DEFAULT_RULES
from nearstream.workers.config.settings import load
from nearstream.workers.kafka.partitioning import choose_partition
from nearstream.workers.monitoring.health import Health
from nearstream.workers.pipeline.alert import Alerting
from nearstream.workers.pipeline.dead_letters import DeadLetterWriter
from nearstream.workers.pipeline.decide import Deciding
from nearstream.workers.pipeline.faust_consumer import BatchConsumer, IdempotentProducer, Transport
from nearstream.workers.pipeline.match import Matching, SignatureTopic
from nearstream.workers.pipeline.sign import Signing
from nearstream.workers.redis.kept.decisions import DecisionStore
from nearstream.workers.redis.kept.tallies import TallyStore
from nearstream.workers.redis.server.address import Connection
from nearstream.workers.redis.server.client import connect
from nearstream.workers.worker.topology import create_app
from tests.support.matching import no_family

KEY = HashKey.public()
SCHEME = preset("fine", KEY)
LETTERS = DeadLetterWriter("p.nearstream.dead-letters.v1", "nearstream/0", Payload.FULL)


async def nothing(*_: object) -> dict[int, int]:
    return {}


def app(roles: str) -> Any:  # noqa: ANN401 - Faust's App without its many type variables
    signing = Signing(Signer(SCHEME, KEY), DocumentLimits(), "p.nearstream.signatures.v1", LETTERS)
    topic: Any = SignatureTopic(nothing, nothing)  # type: ignore[arg-type]
    matcher = Matcher(local_store(), SCHEME, KEY)
    matching = Matching(
        matcher, SCHEME, DocumentLimits(), "p.", LETTERS, topic, nothing, nothing, frozenset(), no_family
    )
    deciding = Deciding(
        DecisionStore(connect(Connection("redis://127.0.0.1:1/0", None, False)), "n"), "p.decisions", LETTERS
    )
    tallies = TallyStore(connect(Connection("redis://127.0.0.1:1/0", None, False)), "n")
    alerting = Alerting(DEFAULT_RULES, tallies, "p.alerts", "s", LETTERS)
    return create_app(
        load({"NEARSTREAM_TOPIC_PREFIX": "p."}),
        Health(),
        signing if roles in ("sign", "all") else None,
        matching if roles in ("match", "all") else None,
        deciding if roles == "decide" else None,
        alerting if roles == "alert" else None,
    )


async def test_each_agent_reads_the_topic_the_table_says() -> None:
    for role, reads in {
        "sign": {"sign": "documents"},
        "match": {"match": "signatures"},
        "decide": {"decide": "verdicts"},
        "alert": {"alert": "verdicts", "count_letters": "dead-letters"},
        "all": {"sign": "documents", "match": "signatures"},
    }.items():
        found = {name.rpartition(".")[2]: agent.channel.topics for name, agent in app(role).agents.items()}
        assert found == {name: (f"p.nearstream.{topic}.v1",) for name, topic in reads.items()}


async def test_the_poll_interval_is_off() -> None:
    """A batch that pauses longer would silently leave the group for ever."""
    assert app("all").conf.broker_max_poll_interval >= 7 * 86_400


async def test_alarms_that_count_from_the_start_of_the_process_are_off() -> None:
    """Otherwise a late rebalance would raise false alarms.

    There would be one for every partition that is new to a worker.
    """
    consumer = app("all").consumer
    async with asyncio.timeout(60):
        await consumer._commit_livelock_detector.fun(consumer)


async def test_the_producer_is_idempotent() -> None:
    made = app("all")
    assert isinstance(made.transport, Transport)
    assert isinstance(made.consumer, BatchConsumer)
    producer = made.transport.create_producer()
    assert isinstance(producer, IdempotentProducer)
    assert producer._settings_extra() == {"acks": "all", "enable_idempotence": True}
    assert producer._settings_default()["partitioner"] is choose_partition
