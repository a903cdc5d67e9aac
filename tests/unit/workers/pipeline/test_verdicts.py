"""Each document that is matched gets one verdict."""

from collections.abc import Iterable

from nearstream.schemas.documents.record import ConsumerRecord, Headers, ProducerRecord
from nearstream.schemas.topics.codec import decode_event
from nearstream.schemas.topics.table import VERDICTS
from nearstream.schemas.verdicts.events import Event
from nearstream.schemas.verdicts.verdict import DocumentVerdict
from nearstream.workers.config.settings import load
from nearstream.workers.pipeline.deployment import Deployment
from nearstream.workers.pipeline.match import Matching
from tests.support.matching import Topic, matching, prose, record, signed

VERDICT_TOPIC = f"p.{VERDICTS.name}"
KINDS = ["unique", "exact_duplicate", "near_duplicate", "containment", "unchanged", "version", "unique"]


def arrivals() -> list[ConsumerRecord]:
    """Return one record for each of `KINDS`, and one that is refused."""
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
    return [*(record(each, offset) for offset, each in enumerate(arrived)), record(b"garbage", 7, b"news/x")]


def telling(verdicts: str = "all", topic: Topic | None = None) -> Matching:
    """Return a matching with this value of NEARSTREAM_VERDICTS."""
    return matching(topic, None, Deployment.of(load({"NEARSTREAM_VERDICTS": verdicts})).verdicts())


def events(sent: Iterable[ProducerRecord]) -> list[Event]:
    return [decode_event(each.value or b"") for each in sent if "dead-letters" not in each.topic]


def verdicts(sent: Iterable[ProducerRecord]) -> list[DocumentVerdict]:
    return [said for said in events(sent) if isinstance(said, DocumentVerdict)]


def contents(sent: Iterable[ProducerRecord]) -> list[tuple[str, bytes | None, bytes | None]]:
    return [(each.topic, each.key, each.value) for each in sent]


async def test_every_state_has_one_verdict_on_its_topic_under_the_key_of_its_document() -> None:
    sent = await telling().decide(arrivals())
    told = verdicts(sent)
    events_of_relations = [said for said in events(sent) if not isinstance(said, DocumentVerdict)]
    assert sum(said.events for said in told) == len(events_of_relations) >= 4
    assert [said.verdict for said in told] == KINDS
    assert [(said.id, said.offset) for said in told] == list(zip("abcdaae", range(7), strict=True))
    assert len({said.event_id for said in told}) == len(KINDS)
    assert [each.key for each in sent if each.topic == VERDICT_TOPIC] == [f"news/{said.id}".encode() for said in told]


async def test_only_a_verdict_carries_the_parts_of_a_page() -> None:
    parts: Headers = [("nearstream-page-parts", bytes(9))]
    sent = await telling().decide([each._replace(headers=parts) for each in arrivals()[:2]])
    assert [each.topic == VERDICT_TOPIC for each in sent] == [parts[0] in each.headers for each in sent]
    assert len(sent) == 3
    too_many: Headers = [("nearstream-page-parts", bytes(9 * 513))]
    (sent_alone,) = await telling().decide([record(signed("a", prose(1)), headers=too_many)])
    assert "nearstream-page-parts" not in dict(sent_alone.headers)


async def test_the_setting_chooses_the_verdicts_that_are_sent() -> None:
    whole = contents(await telling().decide(arrivals()))
    for setting, left in (("related", [kind for kind in KINDS if kind != "unique"]), ("none", [])):
        sent = await telling(setting).decide(arrivals())
        assert [said.verdict for said in verdicts(sent)] == left
        assert [each for each in contents(sent) if each[0] != VERDICT_TOPIC] == [
            each for each in whole if each[0] != VERDICT_TOPIC
        ]
