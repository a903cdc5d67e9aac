"""Senders and recipients of a family, in memory and in Redis: each counts once, for an hour, up to a bound."""

import time
from collections.abc import Sequence

from nearstream.streams.matching.labels import details_of
from nearstream.streams.store.limits import ADDRESSES_CAP, HOUR_MS
from nearstream.streams.store.messages import Join, Measure
from nearstream.streams.store.store import Store
from nearstream.workers.redis.index.index import RedisIndex
from nearstream.workers.redis.reading.members import addresses as stored_addresses
from nearstream.workers.redis.reading.members import stored_family
from nearstream.workers.redis.server.layout import KeyKind
from tests.support.filing import Filing
from tests.support.made_up import OTHER, STANDARD, near

FOUNDER, MINUTE_MS = 4, 60_000
NOW_MS = time.time_ns() // 1_000_000


def hashed(*numbers: int) -> bytes:
    return b"".join(number.to_bytes(8, "big") for number in numbers)


async def join(store: Store, number: int, sender: int = 0, recipients: Sequence[int] = (), after_ms: int = 0) -> None:
    """Let a mail join a family."""
    senders, now_ms = hashed(sender) if sender else b"", NOW_MS + after_ms
    family_id = b"a family of mails"[:16]
    await store.join([Join(FOUNDER, number, False, True, b"", 0, family_id, 0, senders, hashed(*recipients), now_ms)])


async def counts(store: Store, after_ms: int = 0) -> tuple[int, int]:
    (growth,) = await store.growth([Measure(FOUNDER, NOW_MS + after_ms)])
    assert growth is not None
    details = await details_of(store, STANDARD.name, growth, 0)
    return details.senders, details.recipients


async def test_each_sender_and_recipient_of_those_who_joined_counts_once(store: Store) -> None:
    for number, sender, recipients in [(5, 1, [10, 11]), (6, 2, [11, 12]), (7, 1, [12])]:
        await join(store, number, sender, recipients)
        await join(store, number, sender, recipients)  # delivered again
    await join(store, 8)
    await join(store, 9, 0, [13])
    assert await counts(store) == (2, 4)


async def test_an_address_counts_for_an_hour_since_its_last_mail(store: Store) -> None:
    await join(store, 5, 1, [10])
    await join(store, 6, 2, [11])
    await join(store, 7, 1, [12], HOUR_MS // 2)
    assert await counts(store, HOUR_MS // 2) == (2, 3)
    assert await counts(store, HOUR_MS + 1_000) == (1, 1)
    assert await counts(store, 2 * HOUR_MS) == (0, 0)


async def test_a_family_never_has_more_senders_than_joins_within_the_last_hour(store: Store) -> None:
    for number in range(12):
        await join(store, 5 + number, 1 + number, (), 10 * MINUTE_MS * number)
        senders, _ = await counts(store, 10 * MINUTE_MS * number)
        assert senders == min(number + 1, 6)  # joins of the last hour, in whole slots of 5 minutes


async def test_at_most_a_bound_of_addresses_counts_and_the_last_ones_stay(store: Store) -> None:
    for number in range(6):
        await join(store, 5 + number, 1 + number, range(64 * number, 64 * number + 64), 20 * MINUTE_MS * number)
        if number < 3:
            assert await counts(store, 20 * MINUTE_MS * number) == (number + 1, 64 * (number + 1))
    end_ms = 100 * MINUTE_MS
    assert await counts(store, end_ms) == (3, 192)
    for number in range(6):
        await join(store, 25 + number, 1, range(64 * number, 64 * number + 64), end_ms)
    assert await counts(store, end_ms) == (4, ADDRESSES_CAP)


async def test_the_addresses_of_mails_that_join_are_those_of_the_members(redis_index: RedisIndex) -> None:
    filing = Filing(redis_index.store())
    for number, name in enumerate(("a", "b", "c")):
        await filing.put(name, near(10 + number), sender_hash=name * 16, recipient_hashes=("0" * 16,))
    family = await stored_family(redis_index, "default/b")
    assert family is not None
    growth = family.growth
    assert growth is not None
    senders, recipients = await stored_addresses(redis_index, family)
    assert (len(senders), len(recipients)) == (growth.senders, growth.recipients) == (2, 1)
    assert {len(each) for each in senders + recipients} == {16}


async def test_the_hashes_are_deleted_by_the_server_within_two_hours(redis_index: RedisIndex) -> None:
    await join(redis_index.store(), 5, 1, [10, 11])
    keys = await _address_keys(redis_index)
    assert len(keys) == 2
    for key in keys:
        assert 0 < await redis_index.client.pttl(key) <= 2 * HOUR_MS  # type: ignore[union-attr]


async def test_a_unique_document_takes_no_key_for_its_addresses(redis_index: RedisIndex) -> None:
    await Filing(redis_index.store()).put("a", OTHER, sender_hash="a" * 16)
    assert await _address_keys(redis_index) == []


async def _address_keys(index: RedisIndex) -> list[bytes]:
    pattern = index.layout.tag(0) + KeyKind.ADDRESSES + b"*"
    return [key async for key in index.client.scan_iter(match=pattern)]  # type: ignore[union-attr]
