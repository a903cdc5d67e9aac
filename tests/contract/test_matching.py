"""What is said about documents, in memory and on Redis: batches, updates, removals, labels, look-ups."""

from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import pytest
from msgspec.structs import replace as with_fields

from nearstream.schemas.documents.document import LABELS_MAX, OBSERVED_MAX_MS, OFFSET_MAX, PARTITION_MAX, YEAR_9999_MS
from nearstream.schemas.documents.signature import Origin, Signature
from nearstream.schemas.topics.codec import decode_signature, encode_signature
from nearstream.schemas.verdicts.events import Containment, Retraction, Version
from nearstream.streams.matching.arriving import Arrival
from nearstream.streams.store.limits import IndexUnavailableError
from nearstream.streams.store.registration import Status
from nearstream.streams.store.store import Call, Position, Store, Transport
from tests.support.made_up import words
from tests.support.matched import found, in_order, matcher, neighbours, put, removal, sign, verdict
from tests.support.stores import through

TEXT = words(1, 600)
NEAR = [*TEXT[:300], *words(2, 12), *TEXT[300:]]
PASSAGE, OTHER = TEXT[100:300], words(3, 600)


def arrivals(signatures: Sequence[Signature], partitions: int = 1) -> list[Arrival]:
    """Return documents in order, all states of one document in one partition."""
    offsets, records = Counter[int](), []
    for each in signatures:
        partition = ord(each.id) % partitions
        records.append(Arrival(each.document_key, each, Position(partition, offsets[partition])))
        offsets[partition] += 1
    return records


async def test_nothing_is_said_of_nothing(store: Store) -> None:
    assert await matcher(store).match_all([]) == []


async def test_a_document_whose_fields_are_at_their_bounds_is_stored_and_found(store: Store) -> None:
    bird, one = "\U0001f426", matcher(store)
    origin = Origin("t" * 249, PARTITION_MAX, OFFSET_MAX, YEAR_9999_MS)
    large: dict[str, Any] = {
        "lineage": bird * 512,
        "url": bird * 4_096,
        "labels": {f"label-{n}": bird * 128 for n in range(LABELS_MAX)},
    }
    for number, (observed_ms, place) in enumerate(((OBSERVED_MAX_MS, origin), (0, Origin("t", 0, 0)))):
        signature = with_fields(sign(f"{number}{bird * 511}", TEXT), observed_at_ms=observed_ms, origin=place, **large)
        assert decode_signature(encode_signature(signature)) == signature
        told = await one.match_all([Arrival(signature.document_key, signature, Position(0, number))])
        assert told[0].verdict
        assert told[0].verdict.verdict == ("exact_duplicate" if number else "unique")


async def test_a_founder_that_changes_tells_again_of_other_families_and_a_copy_does_not(store: Store) -> None:
    one = matcher(store)
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


async def test_copies_of_one_batch_are_told_once(store: Store) -> None:
    told = await matcher(store).match_all(in_order([put(name, TEXT, ord(name)) for name in "abcd"]))
    assert [verdict(each).verdict for each in told] == ["unique", *["exact_duplicate"] * 3]
    assert [[event.older.id for event in each.events] for each in told] == [[], ["a"], ["a"], ["a"]]  # type: ignore[union-attr]


class _Dies:
    """Carries calls until something is to be decided."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    async def all(self, calls: Sequence[Call]) -> Sequence[Sequence[Any]]:
        if any(call.name == "decide" for call in calls):
            raise IndexUnavailableError
        return await self._transport.all(calls)


async def test_a_copy_tells_nothing_of_an_equal_text_that_joins_its_family_at_the_same_moment(store: Store) -> None:
    first, racing, copy = arrivals([sign(name, TEXT, minute) for minute, name in enumerate("abc")], 2)
    await matcher(store).match_all([first])
    with pytest.raises(IndexUnavailableError):
        await matcher(through(store, _Dies)).match_all([racing])
    (told,) = await matcher(store).match_all([copy])
    assert [event.older.id for event in told.events if not isinstance(event, Retraction)] == ["a"]


class _Slow:
    """Carries calls, and lets something happen after a record was read."""

    def __init__(self, transport: Transport, meanwhile: Callable[[], Awaitable[object]]) -> None:
        self._transport, self._meanwhile = transport, meanwhile

    async def all(self, calls: Sequence[Call]) -> Sequence[Sequence[Any]]:
        replies = await self._transport.all(calls)
        if any(item.record for call in calls if call.name == "fetch" for item in call.items):
            await self._meanwhile()
        return replies


async def test_a_copy_tells_nothing_of_another_one_that_is_decided_while_both_are_compared(store: Store) -> None:
    texts = {"a": TEXT, "b": NEAR, "c": [*TEXT[:100], *words(4, 12), *TEXT[100:]]}
    first, racing, copy = arrivals([sign(name, text, minute) for minute, (name, text) in enumerate(texts.items())], 2)
    await matcher(store).match_all([first])
    with pytest.raises(IndexUnavailableError):
        await matcher(through(store, _Dies)).match_all([racing])

    def slowly(transport: Transport) -> Transport:
        return _Slow(transport, lambda: matcher(store).match_all([racing]))

    (told,) = await matcher(through(store, slowly)).match_all([copy])
    assert [event.older.id for event in told.events if not isinstance(event, Retraction)] == ["a"]


async def test_an_update_names_its_former_state_and_others_name_the_update(store: Store) -> None:
    one = matcher(store)
    first, update = [await one.match(sign("a", text, minute)) for minute, text in enumerate((TEXT, NEAR))]
    (event,) = update.events
    assert isinstance(event, Version)
    assert event.older.version == verdict(first).version
    assert update.registered.former == first.registered.number
    other = await one.match(sign("b", PASSAGE, 2))
    assert [(event.older.id, event.older.version) for event in other.events if isinstance(event, Containment)] == [
        ("a", verdict(update).version)
    ]
    assert verdict(await one.match(sign("c", TEXT, 3))).verdict == "near_duplicate"  # nobody has that text any more


async def test_a_document_without_position_may_come_again(store: Store) -> None:
    told = await matcher(store).match_all([put("a", TEXT), put("a", TEXT, 1)])
    assert [each.registered.status for each in told] == [Status.NEW, Status.UNCHANGED]


async def test_an_id_with_braces_or_newlines_is_only_an_id(store: Store) -> None:
    names = ["a}{b", "a\n", "a", "{nearstream}m", "\0", "ü/../*?[x]"]
    one = matcher(store)
    told = await one.match_all([put(name, [*TEXT, name]) for name in names])
    assert [each.registered.status for each in told] == [Status.NEW] * len(names)
    assert sorted(verdict(each).family.ordinal for each in told) == [1, 2, 3, 4, 5, 6]
    assert verdict((await one.match_all([put("a", [*TEXT, "a"], 1)]))[0]).verdict == "unchanged"
    (gone,) = await one.match_all([removal("a\n")])
    assert [event.document_id for event in gone.events if isinstance(event, Retraction)] == ["a\n"]


async def test_s13_two_collections_never_meet(store: Store) -> None:
    one = matcher(store)
    told = await one.match_all([put("a", TEXT), put("a", TEXT, collection="two"), put("b", TEXT, collection="two")])
    assert [verdict(each).verdict for each in told] == ["unique", "unique", "exact_duplicate"]


async def test_a_look_up_counts_what_is_shared_by_kind(store: Store) -> None:
    own = sign("a", TEXT, lineage="x")
    await matcher(store).match_all([Arrival(own.document_key, own), put("b", PASSAGE), put("c", OTHER, lineage="x")])
    result = await neighbours(store, sign("q", TEXT, lineage="x"))
    kinds = {each.earlier.id: (each.match.by_digest, each.match.by_lineage) for each in result.candidates}
    assert kinds == {"a": (True, True), "b": (False, False), "c": (False, True)}
    first = result.candidates[0]
    assert (first.match.bands, first.match.anchors) == (4, first.anchor_count)
    passage = next(each for each in result.candidates if each.earlier.id == "b")
    assert 0 < passage.match.anchors <= passage.anchor_count < first.anchor_count


async def test_a_look_up_changes_nothing(store: Store) -> None:
    one = matcher(store)
    await one.match_all([put("a", TEXT), put("b", NEAR, 1)])
    assert await found(store, sign("q", NEAR)) == await found(store, sign("q", NEAR)) != []
    assert verdict(await one.match(sign("q", NEAR, 2))).family.ordinal == 3
