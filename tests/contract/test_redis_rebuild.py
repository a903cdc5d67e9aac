"""An index in Redis that is lost, filled again, and used by those who used the lost one."""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import replace

import pytest
from redis.asyncio import Redis

from nearstream.schemas.documents.document import to_milliseconds
from nearstream.schemas.topics.codec import encode_json
from nearstream.streams.matching.arriving import Arrival, Arriving
from nearstream.streams.matching.family import FamilyFacts
from nearstream.streams.matching.looking_up import Neighbours
from nearstream.streams.matching.telling import Matched
from nearstream.streams.store.limits import HOUR_MS, IndexLimits, IndexLostError, IndexState, IndexUnavailableError
from nearstream.streams.store.messages import Join, Measure
from nearstream.streams.store.part import Part
from nearstream.streams.store.registration import Status
from nearstream.streams.store.store import Local, Position, Shape, Store
from nearstream.workers.config.settings import SettingsError
from nearstream.workers.redis.index.index import IndexReplacedError, RedisIndex
from nearstream.workers.redis.index.rebuild import IndexRebuild
from nearstream.workers.redis.server.address import IndexAddress
from nearstream.workers.redis.server.layout import KeyKind
from nearstream.workers.redis.store.opening import RebuildRefusedError
from tests.contract.conftest import PARTITIONS
from tests.support.made_up import KEY, NEAR, NOON, STANDARD, TEXT
from tests.support.matched import arrivals, crawl, matcher

NOON_MS = to_milliseconds(NOON)
BATCH = crawl(PARTITIONS)


@pytest.fixture
def place(address: IndexAddress) -> IndexAddress:
    return replace(address, slots=PARTITIONS)


async def begun(place: IndexAddress, lease_seconds: float = 30) -> IndexRebuild:
    """Return a rebuild of records that were written now."""
    rebuild = await IndexRebuild.begin(place, partitions=PARTITIONS, lease_seconds=lease_seconds)
    rebuild.set_time(time.time_ns() // 1_000_000)
    return rebuild


async def opened(place: IndexAddress, *, may_create: bool = False) -> RedisIndex:
    return await RedisIndex.open(place, partitions=PARTITIONS, may_create=may_create)


async def lose(client: Redis, place: IndexAddress) -> None:
    for key in await client.keys(f"{{{place.namespace}*"):
        await client.delete(key)


def ends(batch: Sequence[Arrival]) -> list[Position]:
    """Return the last position of each partition."""
    positions = [arrival.position for arrival in batch if arrival.position]
    return list({each.partition: each for each in positions}.values())


def said(found: Sequence[Matched]) -> list[bytes]:
    return [encode_json(each) for one in found for each in (*filter(None, [one.verdict]), *one.events)]


async def seen(index: RedisIndex, arrival: Arrival) -> Neighbours:
    assert arrival.signature is not None
    keys = STANDARD.keys(arrival.signature, KEY)
    kept = STANDARD.kept(arrival.signature)
    (near,) = await index.neighbours_of([Arriving(kept, keys, STANDARD)])
    return near


async def test_a_lost_index_is_rebuilt_and_answers_as_before(place: IndexAddress, client: Redis) -> None:
    index = await opened(place, may_create=True)
    before = said(await matcher(index.store()).match_all(BATCH))
    neighbours = await seen(index, BATCH[0])
    assert len(neighbours.candidates) > 1
    await lose(client, place)
    rebuild = await begun(place)
    assert said(await matcher(rebuild.store).match_all(BATCH)) == before
    await rebuild.cover(ends(BATCH))
    await rebuild.lease.finish()
    again = await opened(place)
    assert (await again.state(), await index.state()) == (IndexState.READY, IndexState.LOST)
    found = await seen(again, BATCH[0])
    assert [each.number for each in found.candidates] == [each.number for each in neighbours.candidates]
    assert _without_times(found) == _without_times(neighbours)
    assert await again.checkpoints() == {each.partition: each.offset for each in ends(BATCH)}


def _without_times(neighbours: Neighbours) -> list[FamilyFacts]:
    return [replace(each, last_joined_ms=0) for each in neighbours.families.values()]


async def test_who_used_a_lost_index_uses_the_rebuilt_one(place: IndexAddress, client: Redis) -> None:
    worker, reader = await opened(place, may_create=True), await RedisIndex.open_to_read(place)
    lane = matcher(worker.store())
    await lane.match_all(BATCH[:9])
    await worker.cover(ends(BATCH[:9]))
    assert (await seen(reader, BATCH[1])).candidates
    await lose(client, place)
    for asked in (lane.match_all(BATCH[9:]), worker.trusted_checkpoints(), seen(reader, BATCH[1])):
        with pytest.raises(IndexLostError, match="run `nearstream rebuild`"):
            await asked
    rebuild = await begun(place)
    await matcher(rebuild.store).match_all(BATCH[:9])
    await rebuild.cover(ends(BATCH[:9]))
    newcomer = await opened(place)
    assert await newcomer.state() is IndexState.REBUILDING
    asking = (lane.match_all(BATCH[9:]), seen(reader, BATCH[1]), seen(newcomer, BATCH[1]))
    for asked in (*asking, matcher(newcomer.store()).match_all(BATCH[9:])):
        with pytest.raises(IndexUnavailableError, match=r"replaced|rebuilt"):
            await asked
    await rebuild.lease.finish()
    await rebuild.lease.finish()
    assert (await seen(newcomer, BATCH[1])).candidates
    deadline = asyncio.get_running_loop().time() + 30
    while True:
        try:
            found = await lane.match_all(BATCH[9:])
            break
        except IndexUnavailableError:
            assert asyncio.get_running_loop().time() < deadline
    copy = next(each.verdict for each in found if each.verdict and each.verdict.id == "f")
    assert copy.family.ordinal > 1
    known = {each.partition: each.offset for each in ends(BATCH[:9])}
    assert await worker.trusted_checkpoints() == known
    assert (await seen(reader, BATCH[1])).candidates


async def test_a_lane_that_was_not_in_work_begins_again_too(address: IndexAddress, client: Redis) -> None:
    """What it had counted as acknowledged is not asked of the rebuilt index."""
    index = await opened(address, may_create=True)
    one, other = matcher(index.store()), matcher(index.store())
    await one.match_all(BATCH[:4])
    await other.match_all(BATCH[4:6])
    await lose(client, address)
    rebuild = await begun(address)
    await matcher(rebuild.store).match_all(BATCH[:6])
    await rebuild.lease.finish()
    for lane in (one, other):
        with pytest.raises(IndexReplacedError):
            await lane.match_all(BATCH[6:8])
        await lane.match_all(BATCH[6:8])


async def test_checkpoints_of_an_index_that_is_lost_or_being_rebuilt_are_not_trusted(
    place: IndexAddress, client: Redis
) -> None:
    index = await opened(place, may_create=True)
    await index.cover([Position(0, 1), Position(3, 0)])
    await index.cover([Position(0, 0)])
    assert await index.trusted_checkpoints() == {0: 1, 3: 0}
    await lose(client, place)
    with pytest.raises(IndexLostError, match="run `nearstream rebuild`"):
        await index.trusted_checkpoints()
    rebuild = await begun(place)
    await rebuild.cover([Position(0, 0)])
    with pytest.raises(IndexUnavailableError, match="is being rebuilt"):
        await index.trusted_checkpoints()
    await rebuild.lease.finish()
    with pytest.raises(IndexReplacedError):
        await index.trusted_checkpoints()
    assert await index.trusted_checkpoints() == {0: 0}


async def test_a_slot_that_knows_less_decides_the_checkpoint(address: IndexAddress, client: Redis) -> None:
    index = await opened(replace(address, slots=PARTITIONS), may_create=True)
    await index.cover([Position(0, 9), Position(1, 4)])
    await client.hset(index.facts_keys[2], "o0", "5")
    await client.hdel(index.facts_keys[1], "o1")
    assert await index.trusted_checkpoints() == {0: 5}


async def test_a_rebuild_resumes_from_its_checkpoints(place: IndexAddress) -> None:
    first = await begun(place, lease_seconds=0.05)
    lane = matcher(first.store)
    await lane.match_all(BATCH[:6])
    await first.cover(ends(BATCH[:6]))
    interrupted = said(await lane.match_all(BATCH[6:8]))  # before it is covered
    await asyncio.sleep(0.1)
    second = await begun(place)
    assert await second.index.checkpoints() == {each.partition: each.offset for each in ends(BATCH[:6])}
    for refused in (lane.match_all(BATCH[8:]), first.cover(ends(BATCH))):
        with pytest.raises(IndexUnavailableError, match="being rebuilt"):
            await refused
    for refused in (first.lease.renew(), first.lease.finish()):
        with pytest.raises(RebuildRefusedError):
            await refused
    found = await matcher(second.store).match_all(BATCH[6:], is_again=True)
    assert {each.registered.status for each in found[:2]} == {Status.KNOWN}
    assert said(found[:2]) == interrupted
    whole = matcher(Store(Local([Part(place.limits)]), Shape(1, PARTITIONS), place.limits))
    assert said(found) == said([*await whole.match_all(BATCH[:6]), *await whole.match_all(BATCH[6:])][6:])
    await first.close()
    with pytest.raises(RebuildRefusedError, match="under way"):
        await begun(place)
    await second.lease.finish()


async def test_two_rebuilds_exclude_each_other_as_long_as_one_renews(address: IndexAddress, client: Redis) -> None:
    first = await begun(address, lease_seconds=3600)
    lease = first.index.layout.tag(0) + KeyKind.LEASE
    await client.pexpire(lease, 60_000)  # as if most of it had passed
    await first.lease.renew()
    assert await client.pttl(lease) > 60_000
    with pytest.raises(RebuildRefusedError, match="under way"):
        await begun(address)
    await first.close()
    await (await begun(address)).close()


async def test_an_index_that_holds_documents_is_not_rebuilt(place: IndexAddress) -> None:
    index = await opened(place, may_create=True)
    empty = await begun(place)
    await empty.lease.finish()
    assert await index.state() is IndexState.LOST
    await matcher(empty.store).match_all(BATCH[:1])
    with pytest.raises(RebuildRefusedError, match=f"{place.namespace} holds documents"):
        await begun(place)


async def test_what_is_left_of_a_lost_index_is_deleted_before_it_is_filled_again(
    address: IndexAddress, client: Redis
) -> None:
    place = replace(address, slots=PARTITIONS)
    index = await opened(place, may_create=True)
    await matcher(index.store()).match_all(BATCH)
    await client.delete(index.facts_keys[2])
    await begun(place)
    kept = {tag + kind for tag in map(place.tag, range(PARTITIONS)) for kind in (KeyKind.FACTS, KeyKind.LEASE)}
    assert set(await client.keys(f"{place.prefix.decode()}*")) <= kept


async def test_a_rebuild_that_was_cut_off_while_it_deleted_begins_again(address: IndexAddress, client: Redis) -> None:
    place = replace(address, slots=PARTITIONS)
    index = await opened(place, may_create=True)
    await matcher(index.store()).match_all(BATCH)
    for key in index.facts_keys:
        await client.delete(key)
    await (await begun(place)).close()
    await client.delete(index.facts_keys[3])
    again = await begun(place)
    assert await again.index.checkpoints() == {}
    found = await matcher(again.store).match_all(BATCH)
    assert Status.KNOWN not in {each.registered.status for each in found}


async def test_a_rebuild_of_several_slots_is_taken_up_amid_its_end(address: IndexAddress, client: Redis) -> None:
    place = replace(address, slots=2)
    rebuild = await begun(place)
    await matcher(rebuild.store).match_all(BATCH)
    await rebuild.cover(ends(BATCH))
    await client.hdel(rebuild.index.facts_keys[1], "rebuilder")
    assert await (await opened(place)).state() is IndexState.REBUILDING
    await rebuild.close()
    again = await begun(place)
    assert await again.index.checkpoints() == {each.partition: each.offset for each in ends(BATCH)}
    await again.lease.finish()
    assert await again.index.state() is IndexState.READY


async def test_a_rebuild_takes_the_time_of_records(address: IndexAddress) -> None:
    place = replace(address, limits=IndexLimits(retention_seconds=256, documents=6_400))
    old, near, late = arrivals([("old", TEXT), ("near", NEAR), ("late", TEXT)], PARTITIONS)
    rebuild = await begun(place)
    rebuild.set_time(NOON_MS)
    lane = matcher(rebuild.store)
    await lane.match_all([old])
    await rebuild.cover(ends([old]))
    rebuild.set_time(NOON_MS + 250_000)
    (found,) = await lane.match_all([near])
    assert found.verdict is not None
    assert found.verdict.family.ordinal == 2
    growth = await rebuild.store.growth([Measure(found.registered.number, NOON_MS)])
    assert growth == [None]
    (family,) = await rebuild.store.growth([Measure(_number(rebuild, old), NOON_MS + 250_000)])
    assert family is not None
    assert family.last_ms == NOON_MS + 250_000
    rebuild.set_time(NOON_MS + 600_000)
    (alone,) = await lane.match_all([late])
    assert (alone.verdict and alone.verdict.verdict, alone.events) == ("unique", ())


def _number(rebuild: IndexRebuild, arrival: Arrival) -> int:
    return rebuild.store.number(arrival.position)


async def test_more_slots_than_partitions_and_another_number_are_refused(address: IndexAddress) -> None:
    many = replace(address, slots=PARTITIONS + 1)
    for refused in (opened(many, may_create=True), begun(many)):
        with pytest.raises(SettingsError, match="NEARSTREAM_INDEX_SLOTS: expected at most 4, the number of partitions"):
            await refused
    await opened(replace(address, slots=3), may_create=True)
    other = replace(address, slots=2)
    for refused in (opened(other), begun(other)):
        with pytest.raises(SettingsError, match=r"NEARSTREAM_INDEX_SLOTS: \S+ is spread over 3 slots, not 2: restore"):
            await refused
    with pytest.raises(SettingsError, match="an index for 4 partitions of signatures, which has 6: name another one"):
        await RedisIndex.open(replace(address, slots=3), partitions=6, may_create=False)
    await RedisIndex.open_to_read(other)  # readers take the number from the index


async def test_an_index_of_another_format_is_refused(address: IndexAddress, client: Redis) -> None:
    await opened(address, may_create=True)
    await client.delete(address.key)
    other = b"e" * 8 + b"\x0a" * 40
    await client.hset(address.key, mapping={"layout": other})
    refusal = f"NEARSTREAM_NAMESPACE: {address.namespace} holds an index of format 10, this release keeps 9"
    for refused in (
        opened(address, may_create=True),
        opened(address),
        begun(address),
        RedisIndex.open_to_read(address),
    ):
        with pytest.raises(SettingsError, match=f"{refusal}: name another one and run `nearstream rebuild`"):
            await refused
    assert await client.hgetall(address.key) == {b"layout": other}


@pytest.mark.parametrize(("hours", "counted"), [(0, 1), (2, 0)])
async def test_old_addresses_are_not_stored_again(address: IndexAddress, hours: int, counted: int) -> None:
    rebuild, then_ms = await begun(address), time.time_ns() // 1_000_000 - hours * HOUR_MS
    rebuild.set_time(then_ms)
    await rebuild.store.join([Join(4, 9, False, True, b"", 0, bytes(16), 0, b"a sender", b"receiver")])
    (growth,) = await rebuild.store.growth([Measure(4, then_ms)])
    assert growth is not None
    assert (growth.senders, growth.recipients) == (counted, counted)
