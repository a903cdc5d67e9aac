"""The fault harness detects what is wrong, and finds nothing where all is right."""

import asyncio
import json
import random
from collections import Counter
from collections.abc import Callable
from dataclasses import replace

import pytest
from msgspec import UNSET
from msgspec.structs import replace as with_fields

from nearstream.schemas.documents.document import document_key
from nearstream.schemas.documents.evidence import DocumentRef
from nearstream.schemas.documents.record import ConsumerRecord
from nearstream.schemas.topics.codec import decode_event, encode_json
from nearstream.schemas.topics.table import DOCUMENTS, SIGNATURES
from nearstream.schemas.verdicts.events import Retraction
from nearstream.schemas.verdicts.verdict import DocumentVerdict
from nearstream.workers.config.settings import load
from tests.fault.corpus import corpus
from tests.fault.families import decode_verdict, mixed_families, partition, split_families, unconnected
from tests.fault.observer import Sample
from tests.fault.oracle import Expected, expected, in_order_of_time
from tests.fault.reading import Read
from tests.fault.simulated import Faults, simulated
from tests.fault.verify import disagreements, hasty_commits, last_values, named_after_removal, restated

SETTINGS = load({})

Case = tuple[Read, Expected]


@pytest.fixture(scope="module")
def good() -> Case:
    """Return what workers say that come between each other, and what is expected of them."""
    return asyncio.run(_judged(asyncio.run(simulated(SETTINGS, corpus(240, 3), 3))))


async def _judged(found: Read) -> Case:
    told = await expected(SETTINGS, in_order_of_time(found.documents), last_values(found.events).items())
    return found, told


def wrong(found: Read, told: Expected) -> dict[str, int]:
    return {name: count for name, count in disagreements(found, told).items() if count}


def verdicts_of(found: Read) -> list[DocumentVerdict]:
    return [decode_verdict(value) for value in last_values(found.verdicts).values()]


def copy_in(found: Read) -> DocumentVerdict:
    """Return the verdict of a copy whose family has another member."""
    return next(each for each in verdicts_of(found) if each.verdict == "near_duplicate" and each.family.ordinal == 2)


def unique_in(found: Read) -> DocumentVerdict:
    """Return the verdict of a document that is alone."""
    families = Counter(each.family.id for each in verdicts_of(found))
    return next(each for each in verdicts_of(found) if each.verdict == "unique" and families[each.family.id] == 1)


def saying(found: Read, verdict: DocumentVerdict, *, repeated: bool = False) -> Read:
    """Return the records with this verdict in place of the one with its id, or behind it."""
    told = list(found.verdicts)
    place = next(number for number, (name, _) in enumerate(told) if name == verdict.event_id)
    new = verdict.event_id, told[place][1]._replace(value=encode_json(verdict))
    return replace(found, verdicts=[*told[: place + repeated], new, *told[place + 1 :]])


def ref_of(state: DocumentVerdict) -> DocumentRef:
    return DocumentRef(**{name: getattr(state, name) for name in DocumentRef.__struct_fields__})


def in_family(verdict: DocumentVerdict, name: str, ordinal: int) -> DocumentVerdict:
    return with_fields(verdict, family=with_fields(verdict.family, id=name, ordinal=ordinal))


def without_events(found: Read, but: Callable[[ConsumerRecord], bool] = lambda _: False) -> Read:
    return replace(found, events=[(name, record) for name, record in found.events if but(record)])


def with_event(found: Read, **changed: object) -> Read:
    """Return the records with one event changed."""
    name, record = found.events[0]
    value = json.dumps(json.loads(record.value or b"") | changed).encode()
    return replace(found, events=[(name, record._replace(value=value)), *found.events[1:]])


BROKEN: list[tuple[str, Callable[[Read], Read]]] = [
    ("unanswered", lambda found: replace(found, signed=found.signed[1:])),
    ("missing", lambda found: replace(found, verdicts=found.verdicts[1:])),
    ("missing", lambda found: replace(found, retractions=[])),
    ("surplus", lambda found: replace(found, verdicts=[*found.verdicts, ("0" * 32, found.verdicts[0][1])])),
    ("surplus", lambda found: replace(found, retractions=[*found.retractions, ("0" * 32, found.retractions[0][1])])),
    ("differing values", lambda found: saying(found, with_fields(copy_in(found), events=7), repeated=True)),
    ("differing values", lambda found: saying(found, with_fields(copy_in(found), of=None), repeated=True)),
    ("untrue events", lambda found: with_event(found, confidence=0.5)),
    ("untrue events", lambda found: with_event(found, older=json.loads(found.events[-1][1].value or b"")["older"])),
    ("untrue events", lambda found: with_event(found, family="0" * 32)),
    ("unsent events", lambda found: replace(found, events=found.events[1:])),
    ("split families", lambda found: saying(found, in_family(copy_in(found), "0" * 32, 1))),
    ("mixed families", lambda found: saying(found, in_family(unique_in(found), copy_in(found).family.id, 99))),
    ("doubled ordinals", lambda found: saying(found, in_family(copy_in(found), copy_in(found).family.id, 1))),
    ("lost texts", lambda found: saying(found, with_fields(unique_in(found), redundant=True), repeated=True)),
    ("circles", lambda found: saying(found, with_fields(unique_in(found), of=ref_of(unique_in(found))), repeated=True)),
    ("families without founder", lambda found: saying(found, in_family(copy_in(found), "0" * 32, 2))),
    ("unconnected", lambda found: without_events(found, lambda record: "near-duplicates" in record.topic)),
]


def test_workers_that_come_between_each_other_agree_with_one_process(good: Case) -> None:
    found, told = good
    assert len(found.verdicts) > 220
    assert len(found.events) > 80
    assert {"exact_duplicate", "near_duplicate", "unique", "unchanged"} <= {each.verdict for each in verdicts_of(found)}
    assert told.overflows == 0
    assert wrong(found, told) == {}


@pytest.mark.parametrize(("name", "break_it"), BROKEN, ids=[f"{name}-{n}" for n, (name, _) in enumerate(BROKEN)])
def test_each_invariant_is_broken_by_a_wrong_record(good: Case, name: str, break_it: Callable[[Read], Read]) -> None:
    found, told = good
    assert name in wrong(break_it(found), told)


def test_a_repeat_may_leave_out_what_it_said_of_a_removed_document(good: Case) -> None:
    found, told = good
    verdict = copy_in(found)
    assert verdict.of is not None
    removed = replace(told, removed=told.removed | {(9, 9): document_key(verdict.collection, verdict.of.id)})
    repeat = with_fields(verdict, of=None, resemblance=UNSET, distance=UNSET)
    assert "differing values" not in wrong(saying(found, repeat, repeated=True), removed)


def test_a_verdict_that_names_a_removed_document_is_found(good: Case) -> None:
    found, _ = good
    assert named_after_removal(found) == 0
    retraction = decode_event(found.retractions[0][1].value or b"")
    assert isinstance(retraction, Retraction)
    state = next(each for each in verdicts_of(found) if each.id == retraction.document_id)
    late = found.documents[0]._replace(partition=9, timestamp_ms=found.retractions[0][1].timestamp_ms + 1000)
    naming = with_fields(copy_in(found), collection=state.collection, of=ref_of(state), partition=9, offset=late.offset)
    assert named_after_removal(saying(replace(found, documents=[*found.documents, late]), naming)) == 1


@pytest.mark.parametrize("slots", ["1", "3"])
async def test_workers_that_die_only_restate(slots: str) -> None:
    settings, faults = load({"NEARSTREAM_INDEX_SLOTS": slots}), Faults(0.1, 0.2, 0.2)
    found, told = await _judged(await simulated(settings, corpus(160, 4), 4, faults))
    assert restated(found) > 50
    assert wrong(found, told) == {}


async def test_the_oracle_agrees_with_itself_in_every_order() -> None:
    documents = corpus(150, 5)
    records = [
        ConsumerRecord(DOCUMENTS.name, 0, offset, 1_790_000_000_000 + offset, sent.key, sent.value, [])
        for offset, sent in enumerate(documents)
        if sent.value is not None  # where a removal stands among the states of its document matters
    ]
    first = await expected(SETTINGS, records)
    assert first.overflows == 0
    assert len(first.events) > len(documents) / 4
    for order in range(2):
        random.Random(order).shuffle(records)
        again = await expected(SETTINGS, records, first.events.items())
        assert again.verdicts.keys() == first.verdicts.keys()
        assert again.texts == first.texts
        assert again.true.keys() == first.events.keys()
        families = partition(first.verdicts.values(), first.events.values(), again)
        assert split_families(families, again) == mixed_families(families, again) == unconnected(families, again) == 0


def test_a_commit_before_its_outcome_is_found(good: Case) -> None:
    found, told = good
    committed, ends = dict[tuple[str, int], int](), dict[tuple[str, int], int]()
    outcomes = [record for _, record in (*found.signed, *found.verdicts, *found.events)]
    for record in [*found.documents, *outcomes]:
        place = record.topic.removeprefix(found.prefix), record.partition
        ends[place] = max(ends.get(place, 0), record.offset + 1)
        if place[0] in (DOCUMENTS.name, SIGNATURES.name):
            committed[place] = ends[place]
    early = {place: end - (place[0] == SIGNATURES.name) for place, end in ends.items()}
    assert hasty_commits([Sample(0.0, committed, ends, {}, {})], found, told) == 0
    assert hasty_commits([Sample(0.0, committed, early, {}, {})], found, told) > 0
