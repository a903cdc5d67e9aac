"""What an index tells about one document, with one slot, with several, and in a cluster."""

from dataclasses import replace
from datetime import timedelta

import pytest

from nearstream.schemas.documents.signature import Signature
from nearstream.streams.matching.arriving import Arriving, message_of
from nearstream.streams.matching.telling import Matched
from nearstream.streams.store.messages import Cover
from nearstream.streams.store.store import Position, Shape, Store
from nearstream.workers.kafka.partitioning import partition_of
from nearstream.workers.redis.index.index import Lane, RedisIndex
from nearstream.workers.redis.reading.inspect import StateFacts, inspect_document
from nearstream.workers.redis.server.address import IndexAddress
from nearstream.workers.redis.server.layout import NO_LEASE
from tests.support import made_up
from tests.support.filing import Filing
from tests.support.made_up import KEY, NOON, STANDARD, words

PARTITIONS = 4
TEXT, OTHER = words(1, 600), words(3, 600)
NEAR = [*TEXT[:300], *words(2, 12), *TEXT[300:]]
PASSAGE = [*words(4, 200), *TEXT[100:300]]
NEAR_PASSAGE = [*PASSAGE[:200], *words(5, 5), *PASSAGE[200:]]


@pytest.fixture(params=["one slot", "four slots", "a cluster"])
async def index(request: pytest.FixtureRequest, address: IndexAddress) -> RedisIndex:
    place = address if request.param == "one slot" else replace(address, slots=PARTITIONS)
    if request.param == "a cluster":
        first_node = request.getfixturevalue("nodes")[0].address
        place = replace(place, url=f"redis://{first_node}", cluster=True)
    await RedisIndex.open(place, partitions=PARTITIONS, may_create=True)
    return await RedisIndex.open_to_read(place)


async def match(index: RedisIndex, *signatures: Signature) -> list[Matched]:
    filing = Filing(index.store())
    return [await filing.match(each) for each in signatures]


def sign(name: str, text: list[str], minute: int = 0, lineage: str | None = None) -> Signature:
    return made_up.sign(text, name, observed_at=NOON + timedelta(minutes=minute), lineage=lineage)


async def shown(index: RedisIndex, name: str, now_ms: int | None = None) -> tuple[StateFacts, ...]:
    states = await inspect_document(index, f"default/{name}", now_ms)
    assert states
    return states


async def current(index: RedisIndex, name: str) -> StateFacts:
    return (await shown(index, name))[0]


async def test_a_document_is_shown_with_its_states(index: RedisIndex) -> None:
    minutes = (10, 40, 30, 20)
    batch = [sign("a", words(minute, 300), minute) for minute in minutes]
    first, second, third, fourth = (each.registered.number for each in await match(index, *batch))
    states = await shown(index, "a")
    assert [state.number for state in states] == [second, third, fourth, first]
    partition = partition_of(b"default/a", PARTITIONS)
    assert [state.position for state in states] == [Position(partition, offset) for offset in (2, 3, 4, 1)]
    assert [state.signature for state in states] == [STANDARD.kept(batch[at]) for at in (1, 2, 3, 0)]
    assert [state.superseded_by for state in states] == [0, third, fourth, second]
    assert [[pair.number for pair in state.pairs] for state in states] == [[first], [second], [second], []]
    assert [(state.decided, state.family) for state in states] == [(True, None)] * 4
    assert all(state.record_bytes > 50 for state in states)
    assert await inspect_document(index, "default/nobody") == ()


async def test_a_copy_is_shown_with_its_family(index: RedisIndex) -> None:
    filing = Filing(index.store())
    for each in (sign("a", TEXT), sign("b", NEAR, 1)):
        await filing.match(each)
    founder, copy = await current(index, "a"), await current(index, "b")
    assert copy.family is not None
    assert copy.family.facts is not None
    assert (copy.family.number, copy.family.ordinal) == (founder.number, 2)
    facts = copy.family.facts
    assert (facts.founder, facts.representative, facts.size) == ("default/a", founder.number, 2)
    assert facts.joined == (1, 1, 1)
    assert founder.family == replace(copy.family, ordinal=1)
    await filing.match(sign("b", [*NEAR, *words(6, 5)], 2))
    again, former = await shown(index, "b")
    assert again.family == former.family
    assert again.family is not None
    assert again.family.facts is not None
    assert again.family == replace(copy.family, facts=again.family.facts)
    assert replace(again.family.facts, last_joined_ms=facts.last_joined_ms) == facts


async def test_a_document_that_only_changed_a_little_has_no_copies(index: RedisIndex) -> None:
    await match(index, sign("a", TEXT), sign("a", NEAR, 1))
    again, former = await shown(index, "a")
    assert former.family is None
    assert again.family is not None
    assert (again.family.number, again.family.ordinal, again.family.facts) == (former.number, 1, None)


async def test_a_state_is_shown_as_its_verdict_told_it(index: RedisIndex) -> None:
    texts = [("a", TEXT), ("b", NEAR), ("c", PASSAGE), ("d", TEXT), ("e", OTHER), ("f", NEAR_PASSAGE), ("g", NEAR)]
    texts += [("h", [*PASSAGE, *words(7, 4)]), ("b", [*NEAR, *words(8, 40)]), ("e", OTHER[:-3])]
    batch = [sign(name, text, minute) for minute, (name, text) in enumerate(texts)]
    links_of_others = 0
    for signature, matched in zip(batch, await match(index, *batch), strict=True):
        states = await shown(index, signature.id)
        state = next(each for each in states if each.number == matched.registered.number)
        verdict = matched.verdict
        assert verdict is not None
        assert state.reports == verdict.events
        assert (state.pairs[0].relation if state.pairs else "unique") == verdict.verdict
        assert (state.family.ordinal if state.family else 1) == verdict.family.ordinal
        links_of_others += sum(not pair.is_sent for pair in state.pairs)
    assert links_of_others >= 2


async def test_a_state_that_is_not_decided_yet_is_shown(index: RedisIndex) -> None:
    store = index.store()
    filing = Filing(store)
    await filing.match(sign("a", TEXT))
    decided, arrival = await current(index, "a"), filing.arrival(sign("a", OTHER, 1))
    arriving = Arriving(STANDARD.kept(sign("a", OTHER, 1)), STANDARD.keys(sign("a", OTHER, 1), KEY), STANDARD)
    (told,) = await store.register([message_of(arrival, arriving, store.number(arrival.position))])
    state, former = await shown(index, "a")
    assert (state.number, state.decided, state.family, state.pairs) == (told.number, False, None, ())
    assert former == replace(decided, superseded_by=told.number)


async def test_a_document_is_shown_with_its_end(address: IndexAddress) -> None:
    place = replace(address, limits=replace(address.limits, retention_seconds=256))
    index = await RedisIndex.open(place, partitions=PARTITIONS, may_create=True)
    await match(index, sign("a", TEXT))
    state = await current(index, "a")
    assert not state.expired
    assert state.expires_at_ms == state.registered_at_ms + 256_000
    for later_ms, expired in ((0, False), (1, True)):
        late = await shown(index, "a", state.expires_at_ms + later_ms)
        assert late[0].expired is expired


async def test_what_is_done_of_each_partition_is_read(index: RedisIndex) -> None:
    assert await index.checkpoints() == {}
    await index.cover([Position(0, 3), Position(2, 0)])
    assert await index.checkpoints() == {0: 3, 2: 0}
    first_slot = Store(Lane(index, NO_LEASE), Shape(1, PARTITIONS), index.address.limits)
    await first_slot.cover([Cover(0, 7), Cover(1, 7)])
    assert await index.checkpoints() == ({0: 7, 1: 7, 2: 0} if index.layout.shape.slots == 1 else {0: 3, 2: 0})
