"""The protocol of matching over real signatures, with a store in memory."""

from collections import Counter
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace as with_fields

from nearstream.schemas.codec import encode_event
from nearstream.schemas.events import Containment, Retraction
from nearstream.schemas.signature import Origin, Signature
from nearstream.streams.arriving import Arrival
from nearstream.streams.index.labels import Labelling, unpack_label
from nearstream.streams.matcher import Matcher
from nearstream.streams.store.limits import IndexLimits, IndexUnavailableError
from nearstream.streams.store.local import Local, local_store
from nearstream.streams.store.messages import Measure
from nearstream.streams.store.part import Part
from nearstream.streams.store.store import Call, Position, Shape, Store, Transport
from nearstream.streams.telling import Matched
from tests.support import made_up
from tests.support.made_up import KEY, NOON, STANDARD, words
from tests.support.stores import through

TEXT = words(1, 600)
NEAR = [*TEXT[:300], *words(2, 12), *TEXT[300:]]
PASSAGE, OTHER = TEXT[100:300], words(3, 600)
LIMITS = IndexLimits()


def store(slots: int = 1, partitions: int = 1) -> Store:
    return Store(Local([Part(LIMITS) for _ in range(slots)]), Shape(slots, partitions), LIMITS)


def matcher(of: Store) -> Matcher:
    return Matcher(of, STANDARD, KEY)


def sign(name: str, text: list[str] | str, minute: int) -> Signature:
    return made_up.sign(text, name, observed_at=NOON + timedelta(minutes=minute))


def crawl() -> list[Signature]:
    """Documents, copies, updates, passages, and a document that comes back unchanged."""
    texts = [("a", TEXT), ("b", NEAR), ("c", PASSAGE), ("d", " ".join(TEXT).upper()), ("e", OTHER), ("b", NEAR)]
    texts += [("b", [*NEAR, *words(9, 40)]), ("f", NEAR), ("g", TEXT), ("e", [*OTHER[:-3]]), ("a", OTHER)]
    return [sign(name, text, minute) for minute, (name, text) in enumerate(texts)]


def arrivals(signatures: Sequence[Signature], partitions: int = 1) -> list[Arrival]:
    """Return documents in order, all states of one document in one partition."""
    offsets, found = Counter[int](), []
    for each in signatures:
        partition = ord(each.id) % partitions
        found.append(Arrival(each.document_key, each, Position(partition, offsets[partition])))
        offsets[partition] += 1
    return found


def said(matched: Matched) -> list[bytes]:
    return [encode_event(each) for each in ((matched.verdict,) if matched.verdict else ()) + matched.events]


async def test_where_every_pair_has_its_event_a_copy_stays_in_all_its_buckets() -> None:
    one = Matcher(local_store(IndexLimits(events_per_family=0)), STANDARD, KEY)
    for name, text in (("a", TEXT), ("b", NEAR), ("c", " ".join(TEXT).upper())):
        await one.match(sign(name, text, ord(name)))
    found = await one.match(sign("d", PASSAGE, 200))
    assert {event.older.id for event in found.events if isinstance(event, Containment)} == {"a", "b", "c"}


async def test_a_founder_that_changes_tells_again_of_other_families_and_a_copy_does_not() -> None:
    one = matcher(store())
    await one.match(sign("other", [*PASSAGE, *OTHER], 0))
    await one.match(sign("a", TEXT, 1))
    told = {}
    for name, text in (("a", NEAR), ("b", TEXT)):
        matched = await one.match(sign(name, text, 2))
        assert matched.verdict is not None
        pairs = [event for event in matched.events if not isinstance(event, Retraction)]
        others = [event.older.id for event in pairs if event.older.id not in ("a", name)]
        told[name] = matched.verdict.family.ordinal, others
    assert told == {"a": (1, ["other"]), "b": (2, [])}


@pytest.mark.parametrize(("slots", "partitions"), [(1, 1), (4, 4), (3, 7)])
async def test_a_batch_that_is_delivered_again_is_told_in_equal_bytes(slots: int, partitions: int) -> None:
    shared, batch = store(slots, partitions), arrivals(crawl(), partitions)
    first = [said(each) for each in await matcher(shared).match_all(batch)]
    assert all(first)
    assert [said(each) for each in await matcher(shared).match_all(batch)] == first


async def test_a_document_that_was_signed_twice_is_told_again_and_counted_once() -> None:
    """A signer that dies after it has sent a batch leaves its signatures twice, at other offsets."""
    shared = store()
    one, copy = (with_fields(sign(name, TEXT, 0), origin=Origin("documents", 0, at)) for at, name in enumerate("ab"))
    signed = [one, copy, one, copy]
    batch = [Arrival(each.document_key, each, Position(0, offset)) for offset, each in enumerate(signed)]
    found = [said(each) for each in await matcher(shared).match_all(batch)]
    assert found[2:] == found[:2]
    (growth,) = await shared.growth([Measure(shared.number(Position(0, 0)))])
    assert growth is not None
    assert growth.size == 2


@pytest.mark.parametrize("size", [1, 2, 5, 11])
async def test_families_do_not_depend_on_the_size_of_a_batch(size: int) -> None:
    batch, one = arrivals(crawl()), matcher(store())
    found = [each for at in range(0, len(batch), size) for each in await one.match_all(batch[at : at + size])]
    alone = await matcher(store()).match_all(batch)
    assert [each.verdict.family.id for each in found if each.verdict] == [
        each.verdict.family.id for each in alone if each.verdict
    ]


class _Dies:
    """Carries calls until something is to be decided."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    async def all(self, calls: Sequence[Call]) -> Sequence[Sequence[Any]]:
        if any(call.name == "decide" for call in calls):
            raise IndexUnavailableError
        return await self._transport.all(calls)


async def test_a_copy_tells_nothing_of_an_equal_text_that_joins_its_family_at_the_same_moment() -> None:
    shared = store(1, 2)
    first, racing, copy = arrivals([sign(name, TEXT, minute) for minute, name in enumerate("abc")], 2)
    await matcher(shared).match_all([first])
    with pytest.raises(IndexUnavailableError):
        await matcher(through(shared, _Dies)).match_all([racing])
    (found,) = await matcher(shared).match_all([copy])
    assert [event.older.id for event in found.events if not isinstance(event, Retraction)] == ["a"]


async def test_a_removed_document_is_found_no_more_and_its_family_goes_on() -> None:
    one = matcher(store())
    await one.match_all(arrivals([sign("a", TEXT, 0), sign("b", TEXT, 1)]))
    removal = Arrival("default/a", None, Position(0, 2), removed_at_ms=1, removal=Origin("documents", 0, 9))
    (removed,) = await one.match_all([removal])
    assert [type(each).__name__ for each in removed.events] == ["Retraction"]
    later = Arrival("default/c", sign("c", TEXT, 3), Position(0, 3))
    (found,) = await one.match_all([later])
    assert found.verdict is not None
    assert (found.verdict.of and found.verdict.of.id, found.verdict.family.ordinal) == ("b", 3)
    assert found.verdict.family.founder is None


@pytest.mark.parametrize("is_labelled_first", [False, True])
async def test_a_label_counts_for_the_family_of_its_document(is_labelled_first: bool) -> None:
    shared, label = store(), Labelling("spam", 2, 1)
    given = Arrival("default/b", None, Position(0, 5), labelling=label)
    documents = arrivals([sign("a", TEXT, 0), sign("b", TEXT, 1)])
    await matcher(shared).match_all([given, *documents] if is_labelled_first else [*documents, given])
    part = shared._transport._parts[0]
    marks = [mark for family in part.families.values() for mark in family.growth(0).marks]
    assert [unpack_label(packed) for _, _, packed in marks] == [Labelling("spam", 2, 0 if is_labelled_first else 1)]
