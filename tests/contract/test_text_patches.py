"""A near-duplicate keeps its differences from the text of its family, which nothing but the bytes shows."""

from collections.abc import AsyncIterator
from dataclasses import replace
from random import Random

import pytest
from msgspec.structs import replace as replace_fields
from redis.asyncio import Redis

from nearstream.schemas.signature import Signature
from nearstream.streams.index.family import Sending
from nearstream.streams.store.limits import Admission, Admitted
from nearstream.streams.store.registration import Status
from nearstream.workers.redis_index.address import IndexAddress
from nearstream.workers.redis_index.index import RedisIndex
from nearstream.workers.redis_index.inspect import inspect_document
from nearstream.workers.redis_index.layout import KeyKind
from tests.contract.test_shared_texts import BRIEF, come, signatures, texts, worded
from tests.support.index_documents import START_MS, AnyIndex, Make, ids, pair, removal, settlement

PATCHED_LIMIT = 200  # bytes of the record of a copy with few changes, its member and its count


@pytest.fixture
async def client(address: IndexAddress) -> AsyncIterator[Redis]:
    connected = Redis.from_url(address.url)
    yield connected
    await connected.aclose()


def edited(name: str, seed: int, changes: int = 3, at: int = 0, lineage: str | None = None) -> Admission:
    """Return a document whose text differs from that of `worded` in a few symbols."""
    one, random = worded(name, at=at, lineage=lineage), Random(seed)
    assert one.signature is not None
    ld = bytearray(one.signature.ld)
    for _ in range(changes):
        ld[random.randrange(len(ld))] ^= 0xFF
    digest = random.randbytes(16)
    signature = replace_fields(one.signature, digest=digest, raw_digest=digest, ld=bytes(ld))
    return replace(one, signature=signature, keys=replace(one.keys, digest=digest[:8]))


async def related(index: AnyIndex, *arriving: Admission, second: int = 0) -> list[Admitted]:
    """Admit documents one by one, each of which joins the representative of the family as a near-duplicate."""
    answers = []
    for one in arriving:
        (answer,) = await index.admit([one], START_MS + 1_000 * second)
        answers.append(answer)
        if answer.status in (Status.NEW, Status.UPDATED) and answer.decision is None:
            joins = next((each for each in answer.candidates if each.represents), None)
            await index.settle(
                [settlement(one, answer, joins, [pair(joins)] if joins else [])], START_MS + 1_000 * second
            )
    return answers


async def kept(index: AnyIndex, *documents: Admission) -> list[Signature]:
    """Return what the index has of some documents, which it knows."""
    answers = await index.admit(documents, START_MS)
    return [answer.previous.signature for answer in answers if answer.status is Status.UNCHANGED and answer.previous]


async def test_a_near_duplicate_keeps_its_differences(redis_index: RedisIndex, client: Redis) -> None:
    documents = [worded("a"), edited("b", 1), edited("c", 2)]
    await related(redis_index, *documents)
    stored = await texts(client, redis_index)
    assert (stored.own, stored.shared) == ({1}, {2: 1, 3: 1})
    assert await kept(redis_index, *documents) == signatures(*documents)
    for one in documents[1:]:
        facts = await inspect_document(redis_index, one.document_key)
        assert facts is not None
        (state,) = facts.states
        assert [state.signature] == signatures(one)
        assert state.record_bytes < PATCHED_LIMIT


async def test_a_text_with_many_differences_is_stored_whole(redis_index: RedisIndex, client: Redis) -> None:
    documents = [worded("a"), edited("b", 1, changes=400)]
    await related(redis_index, *documents)
    assert (await texts(client, redis_index)).own == {1, 2}
    assert await kept(redis_index, *documents) == signatures(*documents)


@pytest.mark.parametrize("order", ["abc", "cab", "bca"])
async def test_near_duplicates_keep_their_text_when_others_go(make: Make, order: str) -> None:
    index = await make(BRIEF)
    documents = {"a": worded("a"), "b": edited("b", 1), "c": edited("c", 2)}
    await related(index, *documents.values())
    for name in order:
        await related(index, removal(name))
        del documents[name]
        assert await kept(index, *documents.values()) == signatures(*documents.values())


async def test_a_text_goes_with_the_last_difference_from_it(redis_index: RedisIndex, client: Redis) -> None:
    await related(redis_index, worded("a"), edited("b", 1), edited("c", 2), removal("a"), removal("b"))
    stored = await texts(client, redis_index)
    assert (stored.own, stored.bare, stored.shared) == (set(), {1}, {3: 1})
    await related(redis_index, removal("c"))
    assert (await texts(client, redis_index)).bare == set()


async def test_an_exact_copy_shares_the_differences(redis_index: RedisIndex, client: Redis) -> None:
    first, second = edited("b", 1), edited("c", 1)
    await related(redis_index, worded("a"), first)
    await come(redis_index, second)
    stored = await texts(client, redis_index)
    assert (stored.own, stored.shared) == ({1}, {2: 1, 3: 1})
    await related(redis_index, removal("b"), removal("a"))
    assert await kept(redis_index, second) == signatures(second)


async def test_a_text_that_another_one_has_stays_whole(redis_index: RedisIndex, client: Redis) -> None:
    """Its exact copy may come before the decision about it."""
    documents = [worded("a"), edited("b", 1), edited("c", 1)]
    await related(redis_index, documents[0])
    (answer,) = await redis_index.admit([documents[1]], START_MS)
    await come(redis_index, documents[2])
    joins = answer.candidates[0]
    await redis_index.settle([settlement(documents[1], answer, joins, [pair(joins)])], START_MS)
    stored = await texts(client, redis_index)
    assert (stored.own, stored.shared) == ({1, 2}, {3: 2})
    assert await kept(redis_index, *documents) == signatures(*documents)


async def test_differences_are_not_taken_from_differences(redis_index: RedisIndex, client: Redis) -> None:
    documents = [worded("a"), edited("b", 1, lineage="l"), edited("c", 2, lineage="l")]
    await related(redis_index, *documents[:2])
    (answer,) = await redis_index.admit([documents[2]], START_MS)
    joins = next(each for each in answer.candidates if ids([each]) == ["b"])
    await redis_index.settle([settlement(documents[2], answer, joins, [pair(joins)])], START_MS)
    assert (await texts(client, redis_index)).shared == {2: 1}
    assert await kept(redis_index, *documents) == signatures(*documents)


async def test_a_decision_that_is_repeated_changes_nothing(redis_index: RedisIndex, client: Redis) -> None:
    documents = [worded("a"), edited("b", 1)]
    await related(redis_index, documents[0])
    (answer,) = await redis_index.admit([documents[1]], START_MS)
    joins = answer.candidates[0]
    once = settlement(documents[1], answer, joins, [pair(joins)])
    for _ in range(3):
        await redis_index.settle([once], START_MS)
    assert (await texts(client, redis_index)).followers == {1: 1}


async def test_wrong_differences_are_refused(redis_index: RedisIndex, client: Redis) -> None:
    """A text is what was admitted, whatever a settlement says."""
    a, b, other = worded("a"), edited("b", 1), edited("b", 2)
    await related(redis_index, a)
    (answer,) = await redis_index.admit([b], START_MS)
    joins = answer.candidates[0]
    await redis_index.settle([settlement(other, answer, joins, [pair(joins)])], START_MS)
    assert (await texts(client, redis_index)).own == {1, 2}
    assert await kept(redis_index, a, b) == signatures(a, b)


async def test_an_update_of_a_near_duplicate_leaves_no_text(redis_index: RedisIndex, client: Redis) -> None:
    await related(redis_index, worded("a"), edited("b", 1, at=1), edited("b", 2, at=2), edited("a", 3, at=3))
    left = [edited("a", 3, at=3), edited("b", 2, at=2)]
    assert await kept(redis_index, *left) == signatures(*left)
    await texts(client, redis_index)
    await related(redis_index, removal("a"), removal("b"))
    stored = await texts(client, redis_index)
    assert (stored.own, stored.bare, stored.shared) == (set(), set(), {})


async def test_a_near_duplicate_that_is_spared_late_gets_its_own_text(address: IndexAddress, client: Redis) -> None:
    index = await RedisIndex.open(replace(address, limits=BRIEF), may_create=True)
    b, c = edited("b", 1, lineage="l"), edited("c", 2, lineage="l")
    await related(index, worded("a"), b)
    (answer,) = await index.admit([c], START_MS + 200_000)
    known = [pair(each, "overlap", Sending.ALWAYS) for each in answer.candidates]
    assert "b" in ids(answer.candidates)
    await index.settle([settlement(c, answer, related=known)], START_MS + 200_000)
    await client.delete(index.address.key[:-1] + KeyKind.RECORDS + bytes(5))  # as if its time were over
    facts = await inspect_document(index, "default/b", now_ms=START_MS + 400_000)
    assert facts is not None
    states: list[Signature] = [state.signature for state in facts.states]
    assert states == signatures(b)
    await index.close()
