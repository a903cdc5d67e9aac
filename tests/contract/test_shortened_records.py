"""What copies have in common with the founder of their family is stored once, and read as if it were not."""

from nearstream.schemas.documents.signature import Signature
from nearstream.streams.matching.telling import Matched
from nearstream.streams.store.limits import IndexLimits
from nearstream.streams.store.messages import Query
from nearstream.streams.store.record import PATCH, pack_signature, unpack_signature
from nearstream.streams.store.store import Call, Store
from tests.support.made_up import STANDARD, words
from tests.support.matched import found, in_order, matcher, put, removal, sign
from tests.support.stores import Make, at_time

TEXT = words(1, 400)
COPIES = [*(put(f"d{at}", TEXT, at) for at in range(6)), put("near", [*TEXT, *words(2, 4)], 7)]
START_MS = 1_790_000_000_000


async def stored(store: Store, told: Matched) -> bytes:
    """Return a record as its slot keeps it."""
    number = told.registered.number
    call = Call(store.shape.home(number), "fetch", [Query(number, record=True)])
    ((view,),) = await store._transport.all([call])
    return view.record or b""


async def read(store: Store, told: Matched) -> Signature:
    (view,) = await store.fetch([Query(told.registered.number, record=True)])
    assert view is not None
    assert view.record is not None
    return unpack_signature(view.record, STANDARD.name, view.order.version, view.order.observed_ms)


async def test_records_of_a_family_are_patches_of_the_one_that_is_kept(store: Store) -> None:
    told = await matcher(store).match_all(in_order(COPIES))
    records = [await stored(store, each) for each in told]
    assert all(record.startswith(PATCH) for record in records)
    whole = len(pack_signature(await read(store, told[0])))
    assert max(map(len, records[:6])) < whole / 10
    assert len(records[6]) < whole / 2
    for each, copy in zip(told, COPIES, strict=True):
        assert copy.signature is not None
        assert pack_signature(await read(store, each)) == pack_signature(STANDARD.kept(copy.signature))


async def test_copies_are_found_when_their_founder_was_removed(store: Store) -> None:
    told = await matcher(store).match_all(in_order([*COPIES, removal("d0")]))
    assert await found(store, sign("any", TEXT)) != []
    fresh = matcher(store)
    (again,) = await fresh.match_all(in_order([put("later", TEXT, 9)], 20))
    assert again.verdict is not None
    assert again.verdict.family.id == (told[1].verdict and told[1].verdict.family.id)
    assert (await read(store, told[4])).id == "d4"


async def test_the_record_of_a_founder_is_kept_for_as_long_as_copies_need_it(make: Make) -> None:
    store, time = at_time(await make(IndexLimits(retention_seconds=256)), START_MS)
    one, batch = matcher(store), in_order(COPIES)
    told = await one.match_all(batch[:1])
    for at in (1, 2, 3):
        time.now_ms = START_MS + 60_000 * at
        told += await one.match_all(batch[at : at + 1])
    time.now_ms = START_MS + 300_000  # the founder has expired
    told += await one.match_all(batch[4:5])
    assert (await stored(store, told[4])).startswith(PATCH)
    assert [(await read(store, each)).id for each in told[2:]] == ["d2", "d3", "d4"]
    time.now_ms = START_MS + 900_000  # nothing needs it any more
    told += await one.match_all(in_order([put("last", TEXT, 99)], 9))
    (view,) = await store.fetch([Query(told[4].registered.number, record=True)])
    assert view is None or view.record is None
