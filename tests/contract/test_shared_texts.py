"""An exact copy shares the text of the record before it, which nothing but the bytes shows."""

from collections.abc import AsyncIterator
from dataclasses import replace
from random import Random

import pytest
from msgspec.structs import replace as replace_fields
from redis.asyncio import Redis

from nearstream.schemas.signature import Signature
from nearstream.streams.index.family import Sending
from nearstream.streams.store.limits import Admission, Admitted, IndexLimits
from nearstream.streams.store.registration import Status
from nearstream.workers.redis_index.address import IndexAddress
from nearstream.workers.redis_index.index import RedisIndex
from nearstream.workers.redis_index.inspect import inspect_document
from nearstream.workers.redis_index.layout import KeyKind
from tests.support.index_documents import (
    START_MS,
    AnyIndex,
    Make,
    admission,
    at_offset,
    ids,
    in_order,
    pair,
    removal,
    settlement,
)
from tests.support.stored_texts import StoredTexts

BRIEF = IndexLimits(candidates=200, retention_seconds=256, documents=6_400)
RECORD_LIMIT = 150  # bytes of the record of a copy, its member and its count, with a name of 6 bytes


@pytest.fixture
async def client(address: IndexAddress) -> AsyncIterator[Redis]:
    connected = Redis.from_url(address.url)
    yield connected
    await connected.aclose()


def worded(name: str, text: str = "t", at: int = 0, lineage: str | None = None) -> Admission:
    """Return a document with a text of the usual size, which other documents may have too."""
    anchors, random = [f"{text} {slot}" for slot in range(9)], Random(text)
    one = admission(name, bands=[text], anchors=anchors, text=text, lineage=lineage)
    assert one.signature is not None
    text_fields = {"sketch": random.randbytes(128), "ld": random.randbytes(901), "gaps": b"\3"}
    signature = replace_fields(one.signature, observed_at_ms=START_MS + at, labels={"of": name}, **text_fields)
    return replace(one, signature=signature)


async def come(index: AnyIndex, *arriving: Admission, second: int = 0) -> list[Admitted]:
    """Admit documents one by one, each of which joins the first candidate that is found."""
    answers = []
    for one in arriving:
        (answer,) = await index.admit([one], START_MS + 1_000 * second)
        answers.append(answer)
        if one.signature is not None and answer.decision is None and answer.status in (Status.NEW, Status.UPDATED):
            joins = answer.candidates[0] if answer.candidates else None
            related = [pair(joins, "exact_duplicate")] if joins else []
            told = settlement(one, answer, joins, related, is_exact=joins is not None)
            await index.settle([told], START_MS + 1_000 * second)
    return answers


async def found(index: AnyIndex, text: str = "t", second: int = 0) -> list[Signature]:
    """Return the documents with this text that the index names."""
    keys = replace(worded("any", text).keys, lineage=None)
    candidates = await index.look_up(keys, 20, START_MS + 1_000 * second)
    return sorted((each.signature for each in candidates), key=lambda signature: signature.id)


def signatures(*documents: Admission) -> list[Signature]:
    return [one.signature for one in documents if one.signature is not None]


async def test_copies_keep_their_text_when_its_owner_is_removed(make: Make) -> None:
    index = await make(BRIEF)
    a, b, c = (worded(name) for name in "abc")
    await come(index, a, b, c)
    for gone, left in ((a, (b, c)), (b, (c,))):
        await come(index, removal(gone.document_key.removeprefix("default/")))
        (answer,) = await come(index, left[0])
        assert answer.status is Status.UNCHANGED
        assert answer.previous is not None
        assert [answer.previous.signature] == signatures(left[0])
        assert await found(index) == signatures(*left)
    await come(index, removal("c"))
    assert await found(index) == []


async def test_copies_keep_their_text_when_its_owner_is_replaced_or_expires(make: Make) -> None:
    index = await make(BRIEF)
    a, b, c = (worded(name) for name in "abc")
    await come(index, a)
    await come(index, b, c, second=100)
    await come(index, worded("a", "other", at=9), second=110)
    assert await found(index, second=110) == signatures(b, c)
    assert await found(index, second=300) == signatures(b, c)
    await come(index, removal("a"), second=300)
    (answer,) = await come(index, worded("d"), second=300)
    assert [each.signature for each in answer.candidates] == signatures(b, c)


async def test_a_replayed_copy_names_what_is_left(make: Make) -> None:
    index = await make(BRIEF)
    documents = in_order([worded(name) for name in "abc"])
    then = await come(index, *documents)
    assert ids(then[2].candidates) == ["a"]
    await come(index, at_offset(removal("a"), 3))
    for one, answer, place in zip(documents[1:], then[1:], (2, 3), strict=True):
        (again,) = await come(index, one)
        assert (again.status, again.number) == (Status.REPLAYED, answer.number)
        assert again.decision is not None
        assert again.decision.family.ordinal == place
        assert [each.candidate for each in again.decision.pairs] == [None]


async def test_equal_texts_with_other_numbers_are_not_shared(make: Make) -> None:
    """A signature is not always what its digest says, for example where another release made it."""
    index = await make(BRIEF)
    a, b = worded("a"), worded("b")
    assert b.signature is not None
    b = replace(b, signature=replace_fields(b.signature, words=7))
    await come(index, a, b)
    await come(index, removal("a"))
    assert await found(index) == signatures(b)


async def texts(client: Redis, index: RedisIndex) -> StoredTexts:
    stored = await StoredTexts.of(client, index.address.key[:-1])
    stored.check()
    return stored


async def test_a_text_is_stored_once_and_goes_with_its_last_follower(redis_index: RedisIndex, client: Redis) -> None:
    await come(redis_index, *map(worded, "abcd"))
    stored = await texts(client, redis_index)
    assert (stored.own, stored.shared) == ({1}, {2: 1, 3: 1, 4: 1})
    await come(redis_index, removal("b"))
    assert (await texts(client, redis_index)).followers == {1: 2}
    await come(redis_index, removal("a"))
    stored = await texts(client, redis_index)
    assert (stored.own, stored.bare, stored.shared) == (set(), {1}, {3: 1, 4: 1})
    await come(redis_index, worded("e"), removal("c"), removal("d"))
    stored = await texts(client, redis_index)
    assert (stored.own, stored.bare, stored.shared) == (set(), {1}, {5: 1})
    await come(redis_index, removal("e"))
    stored = await texts(client, redis_index)
    assert stored == StoredTexts()


async def test_a_text_stays_with_its_owner_when_the_last_follower_goes(redis_index: RedisIndex, client: Redis) -> None:
    await come(redis_index, *map(worded, "ab"), removal("b"))
    stored = await texts(client, redis_index)
    assert (stored.own, stored.bare, stored.followers) == ({1}, set(), {})


async def test_all_states_of_a_removed_owner_go(redis_index: RedisIndex, client: Redis) -> None:
    await come(redis_index, *map(worded, "ab"), worded("a", "other", at=9), removal("a"))
    stored = await texts(client, redis_index)
    assert (stored.own, stored.bare, stored.shared) == (set(), {1}, {2: 1})
    facts = await inspect_document(redis_index, "default/b")
    assert facts is not None
    (state,) = facts.states
    assert [state.signature] == signatures(worded("b"))
    assert state.record_bytes < RECORD_LIMIT


async def test_a_document_that_returns_to_a_former_text_shares_it(redis_index: RedisIndex, client: Redis) -> None:
    await come(redis_index, worded("a"), worded("a", "other", at=1), worded("a", at=2))
    assert (await texts(client, redis_index)).shared == {3: 1}
    await come(redis_index, removal("a"))
    assert await texts(client, redis_index) == StoredTexts()


async def test_a_follower_prolongs_the_life_of_its_text(address: IndexAddress, client: Redis) -> None:
    index = await RedisIndex.open(replace(address, limits=BRIEF), may_create=True)
    key = index.address.key[:-1] + KeyKind.RECORDS + bytes(5)
    await come(index, worded("a"), *(worded(f"other {number}", str(number)) for number in range(20)))
    await client.pexpire(key, 1_000)
    await come(index, worded("b"))
    assert await client.pttl(key) > 256_000
    await index.close()


async def test_a_copy_without_its_text_is_gone(redis_index: RedisIndex, client: Redis) -> None:
    """A server that lost keys by another hand names no record that it cannot answer."""
    await come(redis_index, worded("a"), *(worded(f"other {number}", str(number)) for number in range(20)), worded("b"))
    await client.delete(redis_index.address.key[:-1] + KeyKind.RECORDS + bytes(5))
    assert await found(redis_index) == []
    assert await inspect_document(redis_index, "default/b") is None
    again, copy = await come(redis_index, worded("b"), worded("c"))
    assert (again.status, again.candidates) == (Status.NEW, ())
    assert ids(copy.candidates) == ["b"]


async def test_a_copy_that_is_spared_late_gets_its_own_text(address: IndexAddress, client: Redis) -> None:
    index = await RedisIndex.open(replace(address, limits=BRIEF), may_create=True)
    b, c = worded("b", lineage="l"), worded("c", "other", lineage="l")
    await come(index, worded("a"), b)
    (answer,) = await index.admit([c], START_MS + 200_000)
    assert "b" in ids(answer.candidates)
    related = [pair(each, "overlap", Sending.ALWAYS) for each in answer.candidates]
    await index.settle([settlement(c, answer, related=related)], START_MS + 200_000)
    assert (await texts(client, index)).shared == {2: 1}
    await client.delete(index.address.key[:-1] + KeyKind.RECORDS + bytes(5))  # as if its time were over
    facts = await inspect_document(index, "default/b", now_ms=START_MS + 400_000)
    assert facts is not None
    assert [state.signature for state in facts.states] == signatures(b)
    await index.close()


async def test_a_storm_of_equal_texts_stores_one(redis_index: RedisIndex, client: Redis) -> None:
    documents = [worded(f"d{number:05}") for number in range(320)]
    await come(redis_index, *documents)
    stored = await texts(client, redis_index)
    assert (stored.own, set(stored.shared.values())) == ({1}, {1})
    keys = [key async for key in client.scan_iter(match=b"*" + KeyKind.RECORDS + b"*")]
    own = [key for key in keys if key.startswith(redis_index.address.key[:-1] + KeyKind.RECORDS)]
    sizes = [await client.memory_usage(key, samples=0) for key in own]
    assert sum(sizes) / len(documents) < RECORD_LIMIT
    assert await found(redis_index) == signatures(*documents[:2])
