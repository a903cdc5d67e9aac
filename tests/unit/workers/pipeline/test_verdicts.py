"""Each document that is matched gets one verdict."""

from collections import Counter
from collections.abc import Iterable, Sequence

import pytest

from nearstream.schemas.documents.record import ConsumerRecord, Headers, ProducerRecord, header
from nearstream.schemas.topics.codec import decode_event
from nearstream.schemas.topics.table import EVENT_TOPICS, VERDICTS
from nearstream.schemas.verdicts.events import Event, ExactDuplicate, Retraction
from nearstream.schemas.verdicts.verdict import DocumentVerdict
from nearstream.streams.store.store import Store
from nearstream.workers.config.settings import load
from nearstream.workers.pipeline.deployment import Deployment
from nearstream.workers.pipeline.match import Matching
from nearstream.workers.pipeline.step import Lost
from tests.support.matching import Topic, matching, prose, record, signed

VERDICT_TOPIC = f"p.{VERDICTS.name}"
KINDS = ["unique", "exact_duplicate", "near_duplicate", "containment", "unchanged", "version", "unique"]


def arrivals() -> list[ConsumerRecord]:
    """Return one record for each of `KINDS`."""
    text, edited = prose(1), prose(1).replace(prose(1).split()[30], "other", 1)
    rewritten = f"{prose(1, 250)} {prose(3, 150)}"
    arrived = [
        signed("a", text),
        signed("b", text.upper(), 1),
        signed("c", edited, 2),
        signed("d", f"{text} {prose(2, 600)}", 3),
        signed("a", text, 4),
        signed("a", rewritten, 5),
        signed("e", prose(9), 6),
    ]
    return [record(each, offset) for offset, each in enumerate(arrived)]


def telling(verdicts: str = "all", topic: Topic | None = None, store: Store | None = None) -> Matching:
    """Return a matching with this value of NEARSTREAM_VERDICTS."""
    return matching(topic, store, Deployment.of(load({"NEARSTREAM_VERDICTS": verdicts})).verdicts())


def events(sent: Iterable[ProducerRecord]) -> list[Event]:
    return [decode_event(each.value or b"") for each in sent if "dead-letters" not in each.topic]


def verdicts(sent: Iterable[ProducerRecord]) -> list[DocumentVerdict]:
    return [said for said in events(sent) if isinstance(said, DocumentVerdict)]


def contents(sent: Iterable[ProducerRecord]) -> list[tuple[str, bytes | None, bytes | None]]:
    return [(each.topic, each.key, each.value) for each in sent]


async def test_every_state_has_one_verdict() -> None:
    records = arrivals()
    told = verdicts(await telling().decide(records))
    assert [said.verdict for said in told] == KINDS
    assert [(said.id, said.offset) for said in told] == [
        ("a", 0), ("b", 1), ("c", 2), ("d", 3), ("a", 4), ("a", 5), ("e", 6)
    ]  # fmt: skip
    assert len({said.event_id for said in told}) == len(records)


async def test_a_verdict_counts_the_events_that_are_sent_with_it() -> None:
    told = await telling().decide(arrivals())
    by_arrival: Counter[bytes | None] = Counter()
    current: DocumentVerdict | None = None
    for said in events(told):
        if isinstance(said, DocumentVerdict):
            current = said
        else:
            assert current is not None
            by_arrival[current.event_id.encode()] += 1
    assert by_arrival == Counter({said.event_id.encode(): said.events for said in verdicts(told) if said.events})
    assert by_arrival.total() >= 4


async def test_a_verdict_goes_to_its_topic_under_the_key_of_its_document() -> None:
    sent = await telling().decide(arrivals())
    keys = [each.key for each in sent if each.topic == VERDICT_TOPIC]
    assert keys == [f"news/{said.id}".encode() for said in verdicts(sent)]
    assert len(keys) == len(KINDS)


async def test_only_a_verdict_carries_the_parts_of_a_page() -> None:
    parts: Headers = [("nearstream-page-parts", bytes(9))]
    sent = await telling().decide([each._replace(headers=parts) for each in arrivals()[:2]])
    assert [each.topic == VERDICT_TOPIC for each in sent] == [parts[0] in each.headers for each in sent]
    assert len(sent) == 3
    too_many: Headers = [("nearstream-page-parts", bytes(9 * 513))]
    (sent_alone,) = await telling().decide([record(signed("a", prose(1)), headers=too_many)])
    assert "nearstream-page-parts" not in dict(sent_alone.headers)


async def test_the_family_of_a_document_is_that_of_its_events() -> None:
    _, second, pair = events(await telling().decide(arrivals()[:2]))
    assert isinstance(second, DocumentVerdict)
    assert isinstance(pair, ExactDuplicate)
    assert second.family.id == pair.family
    assert (second.family.ordinal, second.of) == (2, pair.older)
    assert second.family.founder == pair.older


async def test_a_replay_restates_the_verdict_byte_for_byte() -> None:
    job, records = telling(), arrivals()
    first = contents(await job.decide(records))
    assert contents(await job.decide(records)) == first
    assert [said for each in records for said in contents(await job.decide([each]))] == first


async def test_batches_of_any_size_reach_the_same_verdicts() -> None:
    records = arrivals()
    whole = contents(await telling().decide(records))
    job = telling()
    assert [said for one in records for said in contents(await job.decide([one]))] == whole


async def test_an_index_that_lost_its_newest_writes_reaches_the_same_verdicts_again() -> None:
    records = arrivals()
    told = contents(await telling().decide(records))
    job = telling(topic=Topic(records, committed_offset=len(records)))
    parts = [part async for part in job.catch_up(Lost(0, -1, len(records)))]
    assert [said for part in parts for said in contents(part)] == told


@pytest.mark.parametrize(
    ("setting", "left"),
    [("all", KINDS), ("related", [kind for kind in KINDS if kind != "unique"]), ("none", [])],
)
async def test_the_setting_chooses_the_verdicts_that_are_sent(setting: str, left: Sequence[str]) -> None:
    sent, whole = [await telling(chosen).decide(arrivals()) for chosen in (setting, "all")]
    assert [said.verdict for said in verdicts(sent)] == left
    assert [each for each in contents(sent) if each[0] != VERDICT_TOPIC] == [
        each for each in contents(whole) if each[0] != VERDICT_TOPIC
    ]


async def test_a_removal_is_retracted_on_the_topic_of_verdicts_too_and_has_no_verdict() -> None:
    job = telling()
    await job.decide(arrivals()[:2])
    told = await job.decide([record(None, 2, b"news/a")])
    assert [type(said) for said in events(told)] == [Retraction] * len(EVENT_TOPICS)
    assert VERDICT_TOPIC in [each.topic for each in told]


async def test_what_is_refused_has_no_verdict() -> None:
    first, last = arrivals()[0], arrivals()[1]._replace(offset=2)
    sent = await telling().decide([first, record(b"garbage", 1, b"news/x"), last])
    assert [said.verdict for said in verdicts(sent)] == ["unique", "exact_duplicate"]
    assert sum(header(each.headers, "nearstream-dead-reason") is not None for each in sent) == 1
