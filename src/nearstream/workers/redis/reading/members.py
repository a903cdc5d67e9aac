"""Read who belongs to a family."""

from asyncio import Lock
from collections.abc import Sequence
from dataclasses import replace

from nearstream.streams.alerting.counting import LabelledGrowth, rate_before
from nearstream.streams.matching.family import FamilyFacts, family_facts
from nearstream.streams.matching.labels import NO_LABELS, FamilyDetails, Labelling, unpack_label
from nearstream.streams.store.families import hour_start
from nearstream.streams.store.limits import IndexLostError
from nearstream.streams.store.messages import Measure, Query, View
from nearstream.streams.store.record import Recorded, unpack_record
from nearstream.streams.store.registration import NUMBER_BYTES
from nearstream.workers.redis.index.index import RedisIndex, current_state, founder_in
from nearstream.workers.redis.kept.label_guards import LabelGuards, label_state
from nearstream.workers.redis.server.address import IndexAddress
from nearstream.workers.redis.server.client import ask
from nearstream.workers.redis.server.errors import errors_mapped
from nearstream.workers.redis.server.layout import LINK_SCORE, RECIPIENTS, SENDERS, KeyKind

_SAMPLED = 64


async def stored_family(index: RedisIndex, document_key: str) -> FamilyFacts | None:
    """Return size and growth of the family of a document, or None if the index does not have the document."""
    current = await current_state(index, document_key)
    own = _recorded(index, current[1]) if current else None
    if current is None or own is None:
        return None
    number, founder = current[0], founder_in(*current)
    (growth,) = await index.store().growth([Measure(founder)])
    return family_facts(growth, founder if growth else number, own)


async def members(index: RedisIndex, family: FamilyFacts, after: int, limit: int) -> tuple[list[Recorded], int | None]:
    """Return up to `limit` stored members of a family, beginning behind the ordinal `after`.

    The members are in the order in which they joined. The second value is the ordinal to go on from, or None.
    """
    founder = family.number
    if family.growth is None:
        return list((await living(index, [founder][after : after + limit])).values()), None
    places = await _places(index, founder, f"({after}", f"({LINK_SCORE}", limit + 1)
    page, rest = places[:limit], places[limit:]
    end = page[-1][1] if rest else None
    if end is not None and rest[0][1] == end:  # a document whose states change has one place for both
        page += await _places(index, founder, end, end, limit)
    return list((await living(index, [number for number, _ in page])).values()), end


async def labelled_family(
    index: RedisIndex, guards: LabelGuards, collection: str, family: FamilyFacts, delay_ms: int
) -> FamilyDetails:
    """Return the details of a family, of a labelled one with its oldest and newest members."""
    details = await index.details(family.growth, delay_ms) if family.growth else FamilyDetails()
    if details.labels == NO_LABELS:
        return details
    guard = await guards.read(collection, family.family_id)
    state = label_state(guard, (each.labelling for each in details.labelled))
    return replace(details, label_state=state, others=await sampled(index, family.number))


async def sampled(index: RedisIndex, founder: int) -> tuple[Recorded, ...]:
    """Return the oldest and the newest members that live, at most 64 of each."""
    with errors_mapped():
        first = await _places(index, founder, 1, f"({LINK_SCORE}", _SAMPLED)
        key, below = _key(index, KeyKind.MEMBERS, founder), f"({LINK_SCORE}"
        last = await ask(index.asking, "ZREVRANGEBYSCORE", key, below, 1, "LIMIT", 0, _SAMPLED)
        numbers = [*(number for number, _ in first), *(int.from_bytes(each, "big") for each in last)]
        return tuple((await living(index, numbers or [founder])).values())


async def living(index: RedisIndex, numbers: Sequence[int]) -> dict[int, Recorded]:
    """Return the documents of the states that can be found, by number."""
    views = await index.store().fetch([Query(number, record=True) for number in dict.fromkeys(numbers)])
    found = {}
    for number, view in zip(dict.fromkeys(numbers), views, strict=True):
        record = _recorded(index, view) if view is not None and not view.is_dead else None
        if record is not None:
            found[number] = record
    return found


async def addresses(index: RedisIndex, family: FamilyFacts) -> tuple[list[str], list[str]]:
    """Return the senders and recipients of the last hour, in hex."""
    if family.growth is None:
        return [], []
    since_ms = hour_start(family.growth.now_ms)
    key = _key(index, KeyKind.ADDRESSES, family.number)
    senders, recipients = [
        [address.hex() for address in await ask(index.asking, "ZRANGEBYSCORE", key + end.encode(), since_ms, "+inf")]
        for end in (SENDERS, RECIPIENTS)
    ]
    return senders, recipients


def spellings(name: str) -> list[str]:
    """Return an id as given, then with and without angle brackets."""
    bare = name.strip().removeprefix("<").removesuffix(">")
    return list(dict.fromkeys((name, f"<{bare}>", bare))) if bare else [name]


async def labels_of(index: RedisIndex, family: FamilyFacts) -> list[tuple[str, Labelling]]:
    """Return the ids and labels of the live labelled documents, the oldest label first."""
    growth = family.growth
    given = {number: unpack_label(packed) for _, number, packed in (growth.marks if growth else ())}
    found = [(record.id, given[number]) for number, record in (await living(index, [*given])).items()]
    return sorted(found, key=lambda each: (each[1].given_ms, each[0]))


class LabelledFamilies:
    """Reads how fast labelled families grow, from an index that need not be there yet."""

    def __init__(self, address: IndexAddress) -> None:
        self._address = address
        self._index: RedisIndex | None = None
        self._opening = Lock()  # several families are read at once, and all of them from one connection

    async def growth(self, document_key: str) -> LabelledGrowth | None:
        """Return the growth of the family of a document, None if nothing in it is labelled."""
        try:
            async with self._opening:
                self._index = self._index or await RedisIndex.open_to_read(self._address)
            return await _growth(self._index, document_key)
        except IndexLostError:
            return None  # without an index no label counts

    async def close(self) -> None:
        """Close the connections."""
        if self._index is not None:
            await self._index.close()


async def _growth(index: RedisIndex, document_key: str) -> LabelledGrowth | None:
    family = await stored_family(index, document_key)
    growth = family.growth if family else None
    if growth is None or not growth.marks:
        return None
    before = rate_before(growth.joins, min(unpack_label(packed).given_ms for _, _, packed in growth.marks))
    return LabelledGrowth(before, growth.joined[0], growth.senders, growth.recipients)


async def _places(
    index: RedisIndex, founder: int, first: str | int, last: str | int, limit: int
) -> list[tuple[int, int]]:
    key = _key(index, KeyKind.MEMBERS, founder)
    found = await ask(index.asking, "ZRANGEBYSCORE", key, first, last, "WITHSCORES", "LIMIT", 0, limit)
    numbers = [int.from_bytes(member, "big") for member in found[::2]]
    return list(zip(numbers, [int(float(score)) for score in found[1::2]], strict=True))


def _key(index: RedisIndex, kind: KeyKind, founder: int) -> bytes:
    layout = index.layout
    return layout.tag(layout.shape.home(founder)) + kind + founder.to_bytes(NUMBER_BYTES, "big")


def _recorded(index: RedisIndex, view: View) -> Recorded | None:
    if view.record is None:
        return None
    return unpack_record(view.record, index.address.scheme, view.order.version, view.order.observed_ms)
