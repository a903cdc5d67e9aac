"""What Faust is told when a worker is put together."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from schemas.dead_letter import Payload
from streams.completion import Bounds
from streams.hashing import HashKey
from streams.matcher import Matcher
from streams.memory_index import MemoryIndex
from streams.scheme import preset
from streams.signer import Signer
from workers.app import create_app
from workers.health import Health
from workers.letters import Letters
from workers.matching import Matching, SignatureTopic
from workers.settings import load
from workers.signing import Signing
from workers.transport import BatchConsumer, IdempotentProducer, Transport

KEY = HashKey.public()
SCHEME = preset("standard", KEY)
LETTERS = Letters("p.nearstream.dead-letters.v1", "nearstream/0", Payload.FULL)


async def nothing(*_: object) -> dict[int, int]:
    return {}


def app(folder: Path, roles: str) -> Any:  # noqa: ANN401 - Faust's App without its many type variables
    signing = Signing(Signer(SCHEME, KEY), Bounds(), "p.nearstream.signatures.v1", LETTERS)
    topic: Any = SignatureTopic(nothing, nothing)  # type: ignore[arg-type]
    matching = Matching(Matcher(MemoryIndex(), SCHEME, KEY), SCHEME, Bounds(), "p.", LETTERS, topic, nothing, nothing)
    return create_app(
        load({"NEARSTREAM_TOPIC_PREFIX": "p."}),
        str(folder),
        Health(),
        signing if roles in ("sign", "all") else None,
        matching if roles in ("match", "all") else None,
    )


@pytest.mark.parametrize(
    ("roles", "reads"),
    [
        ("sign", {"sign": ("p.nearstream.documents.v1",)}),
        ("match", {"match": ("p.nearstream.signatures.v1",)}),
        ("all", {"sign": ("p.nearstream.documents.v1",), "match": ("p.nearstream.signatures.v1",)}),
    ],
)
async def test_each_agent_reads_the_topic_the_table_says(
    roles: str, reads: dict[str, tuple[str]], tmp_path: Path
) -> None:
    agents = app(tmp_path, roles).agents
    assert {name.rpartition(".")[2]: agent.channel.topics for name, agent in agents.items()} == reads


async def test_the_poll_interval_is_off(tmp_path: Path) -> None:
    """A batch paused beyond it would leave the group for ever without a word."""
    assert app(tmp_path, "all").conf.broker_max_poll_interval >= 7 * 86_400


async def test_alarms_that_count_from_the_start_of_the_process_are_off(tmp_path: Path) -> None:
    """Each rebalance later than they allow would raise one for every partition that is new to a worker."""
    consumer = app(tmp_path, "all").consumer
    async with asyncio.timeout(5):
        await consumer._commit_livelock_detector.fun(consumer)


async def test_the_producer_is_idempotent(tmp_path: Path) -> None:
    made = app(tmp_path, "all")
    assert isinstance(made.transport, Transport)
    assert isinstance(made.consumer, BatchConsumer)
    producer = made.transport.create_producer()
    assert isinstance(producer, IdempotentProducer)
    assert producer._settings_extra() == {"acks": "all", "enable_idempotence": True}
