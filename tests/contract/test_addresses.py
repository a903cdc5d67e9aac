"""Senders and recipients of a family, in memory and in Redis: each counts once, for an hour, up to a bound."""

from collections.abc import Sequence
from dataclasses import replace

from msgspec.structs import replace as replace_fields

from nearstream.streams.index.details import ADDRESSES_CAP
from nearstream.streams.store.limits import Admission
from nearstream.workers.redis_index.address import IndexAddress
from nearstream.workers.redis_index.index import RedisIndex
from tests.contract.test_families import WORDS, copy_of, joined, named, only, told
from tests.support.index_documents import START_MS, AnyIndex, admission

HOUR = 3_600


def hashed(number: int) -> bytes:
    return number.to_bytes(8, "big")


def mailed(one: Admission, sender: int = 0, recipients: Sequence[int] = ()) -> Admission:
    """Return a document as the mail of a sender to some recipients."""
    assert one.signature is not None
    packed = b"".join(map(hashed, recipients))
    signature = replace_fields(one.signature, sender=hashed(sender) if sender else b"", recipients=packed)
    return replace(one, signature=signature)


def mail(name: str, sender: int = 0, recipients: Sequence[int] = ()) -> Admission:
    return mailed(copy_of(WORDS, name), sender, recipients)


async def addresses(index: AnyIndex, number: int, second: float = 0) -> tuple[int, int]:
    found = await index.details(number, 0, START_MS + int(1_000 * second))
    return found.senders, found.recipients


async def founded(index: AnyIndex) -> int:
    return (await only(index, mailed(copy_of(WORDS, "a", 0), 99, [98]))).number


async def test_each_sender_and_recipient_of_those_who_joined_counts_once(index: AnyIndex) -> None:
    first = await founded(index)
    assert await addresses(index, first) == (0, 0)  # the first one joined nobody
    for name, sender, recipients in [("b", 1, [10, 11]), ("c", 2, [11, 12]), ("d", 1, [12])]:
        answer, _ = await joined(index, mail(name, sender, recipients))
    assert await addresses(index, first) == await addresses(index, answer.number) == (2, 3)
    other = await only(index, admission("other", anchors=range(50, 70)))
    assert await addresses(index, other.number) == (0, 0)


async def test_documents_without_addresses_count_as_none(index: AnyIndex) -> None:
    first = await founded(index)
    await joined(index, mail("b"))
    assert await addresses(index, first) == (0, 0)
    await joined(index, mail("c", recipients=[1]))
    assert await addresses(index, first) == (0, 1)


async def test_a_record_that_is_delivered_again_counts_once(index: AnyIndex) -> None:
    first = await founded(index)
    one = replace(mail("b", 1, [10]), position=None)
    await joined(index, one)
    answer = await only(index, one, 1)
    assert answer.decision is not None
    assert await addresses(index, first, 1) == (1, 1)


async def test_an_address_counts_for_an_hour_since_its_last_mail(index: AnyIndex) -> None:
    first = await founded(index)
    await joined(index, mail("b", 1, [10]), 0)
    await joined(index, mail("c", 2, [11]), 0)
    await joined(index, mail("d", 1, [12]), HOUR / 2)
    assert await addresses(index, first, HOUR / 2) == (2, 3)
    assert await addresses(index, first, HOUR + 1) == (1, 1)
    assert await addresses(index, first, 2 * HOUR) == (0, 0)


async def test_a_family_never_has_more_senders_than_joins_within_the_last_hour(index: AnyIndex) -> None:
    first = await founded(index)
    for number in range(12):
        await joined(index, mail(f"c{number}", 1 + number), 600 * number)
        now = START_MS + 600_000 * number
        count = (await index.details(first, 0, now)).senders
        assert count == min(number + 1, 6)  # joins of the last hour, in whole slots of 5 minutes


async def test_at_most_a_bound_of_addresses_counts_and_the_last_ones_stay(index: AnyIndex) -> None:
    first = await founded(index)
    for number in range(6):
        await joined(index, mail(f"c{number}", 1 + number, range(64 * number, 64 * number + 64)), 1_200 * number)
        if number < 3:
            assert await addresses(index, first, 1_200 * number) == (number + 1, 64 * (number + 1))
    assert await addresses(index, first, 6_000) == (3, 192)
    for number in range(6):
        await joined(index, mail(f"d{number}", 1, range(64 * number, 64 * number + 64)), 6_000)
    assert await addresses(index, first, 6_000) == (4, ADDRESSES_CAP)


async def test_a_family_brings_its_addresses_into_the_one_that_it_joins(index: AnyIndex) -> None:
    first = await founded(index)
    middle = mailed(admission("m", anchors=[*range(9, 20), *range(90, 99)]), 1, [10])
    copy = mailed(admission("c", anchors=range(80, 99)), 2, [10, 11])
    seen_middle, seen_copy = await index.admit([middle, copy], START_MS)
    await told(index, copy, seen_copy, named(seen_copy, "m"))
    assert await addresses(index, seen_middle.number) == (1, 2)
    await told(index, middle, seen_middle, named(seen_middle, "a"))
    assert await addresses(index, first) == await addresses(index, seen_copy.number) == (2, 2)


async def test_an_address_in_one_shard_counts_in_no_other(address: IndexAddress) -> None:
    index = await RedisIndex.open(replace(address, shards=3), may_create=True)
    first = await founded(index)
    await joined(index, mail("b", 1, [10]))
    near = await index.neighbours(admission("q", anchors=["none"]).keys, 9, START_MS)
    found = await addresses(index, first)
    await index.close()
    assert found == (1, 1)
    assert near.may_have_details


async def test_the_hashes_are_deleted_by_the_server_within_an_hour(redis_index: RedisIndex) -> None:
    first = await founded(redis_index)
    await joined(redis_index, mail("b", 1, [10, 11]))
    assert await addresses(redis_index, first) == (1, 2)
    client = redis_index.client
    tag = redis_index.shards[0].tag
    keys = [key async for key in client.scan_iter(match=tag + b"e*")]  # type: ignore[union-attr]
    assert len(keys) == 2
    for key in keys:
        assert 0 < await client.pttl(key) <= 1_000 * HOUR  # type: ignore[union-attr]


async def test_a_unique_document_takes_no_key_for_its_addresses(redis_index: RedisIndex) -> None:
    await founded(redis_index)
    keys = [key async for key in redis_index.client.scan_iter(match=redis_index.shards[0].tag + b"e*")]  # type: ignore[union-attr]
    assert keys == []
