"""Read who belongs to a family."""

from asyncio import Lock
from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

from nearstream.streams.alerting.counting import LabelledGrowth, rate_before
from nearstream.streams.matching.family import FamilyFacts, family_facts
from nearstream.streams.matching.labels import NO_LABELS, FamilyDetails, Labelling, unpack_label
from nearstream.streams.matching.protocol.decision import founder_of
from nearstream.streams.store.families import Growth, hour_start
from nearstream.streams.store.limits import IndexLostError
from nearstream.streams.store.messages import Measure, Query, View
from nearstream.streams.store.record import Recorded, unpack_record
from nearstream.streams.store.store import Store
from nearstream.workers.redis.index.index import RedisIndex
from nearstream.workers.redis.kept.label_guards import Guards, label_state
from nearstream.workers.redis.server.address import IndexAddress
from nearstream.workers.redis.server.errors import errors_mapped

_SAMPLED = 64
_LAST = 1 << 40  # more than any ordinal


class Index(Protocol):
    """An index that is read, on Redis or in this process."""

    @property
    def scheme(self) -> str:
        """The name of its scheme."""

    def store(self) -> Store:
        """Return its store."""

    async def details(self, growth: Growth, delay_ms: int) -> FamilyDetails:
        """Return the details of a family that was found. Labels count from the age `delay_ms` on."""

    async def current_number(self, document_key: str) -> int:
        """Return the number of the current state of a document, 0 without it."""

    async def page(self, founder: int, first: int, last: int, most: int) -> list[tuple[int, int]]:
        """Return members of a family that live, with their ordinals, from one ordinal to another."""

    async def newest(self, founder: int, most: int) -> list[int]:
        """Return the members of a family that live and joined last, the last one first."""

    async def addresses(self, founder: int, since_ms: int) -> tuple[list[bytes], list[bytes]]:
        """Return the senders and recipients of mails that joined a family since a time."""


async def current_state(index: Index, document_key: str) -> tuple[int, View] | None:
    """Return the number of the current state of a document, and what is known about it."""
    number = await index.current_number(document_key)
    (view,) = await index.store().fetch([Query(number, record=True)]) if number else (None,)
    return None if view is None or view.is_gone else (number, view)


def founder_in(number: int, view: View) -> int:
    """Return the founder of the family of a state, without a decision the state itself."""
    return number if view.decision is None else founder_of(view.decision)


async def stored_family(index: Index, document_key: str) -> FamilyFacts | None:
    """Return size and growth of the family of a document, or None if the index does not have the document."""
    current = await current_state(index, document_key)
    own = _recorded(index, current[1]) if current else None
    if current is None or own is None:
        return None
    number, founder = current[0], founder_in(*current)
    (growth,) = await index.store().growth([Measure(founder)])
    return family_facts(growth, founder if growth else number, own)


async def members(index: Index, family: FamilyFacts, after: int, limit: int) -> tuple[list[Recorded], int | None]:
    """Return up to `limit` stored members of a family, beginning behind the ordinal `after`.

    The members are in the order in which they joined. The second value is the ordinal to go on from, or None.
    """
    founder = family.number
    if family.growth is None:
        return list((await living(index, [founder][after : after + limit])).values()), None
    places = await index.page(founder, after + 1, _LAST, limit + 1)
    page, rest = places[:limit], places[limit:]
    end = page[-1][1] if rest else None
    if end is not None and rest[0][1] == end:  # a document whose states change has one place for both
        page += await index.page(founder, end, end, limit)
    return list((await living(index, [number for number, _ in page])).values()), end


async def labelled_family(
    index: Index, guards: Guards, collection: str, family: FamilyFacts, delay_ms: int
) -> FamilyDetails:
    """Return the details of a family, of a labelled one with its oldest and newest members."""
    details = await index.details(family.growth, delay_ms) if family.growth else FamilyDetails()
    if details.labels == NO_LABELS:
        return details
    guard = await guards.read(collection, family.family_id)
    state = label_state(guard, (each.labelling for each in details.labelled))
    return replace(details, label_state=state, others=await sampled(index, family.number))


async def sampled(index: Index, founder: int) -> tuple[Recorded, ...]:
    """Return the oldest and the newest members that live, at most 64 of each."""
    with errors_mapped():
        first = await index.page(founder, 1, _LAST, _SAMPLED)
        numbers = [*(number for number, _ in first), *await index.newest(founder, _SAMPLED)]
        return tuple((await living(index, numbers or [founder])).values())


async def living(index: Index, numbers: Sequence[int]) -> dict[int, Recorded]:
    """Return the documents of the states that can be found, by number."""
    views = await index.store().fetch([Query(number, record=True) for number in dict.fromkeys(numbers)])
    found = {}
    for number, view in zip(dict.fromkeys(numbers), views, strict=True):
        record = _recorded(index, view) if view is not None and not view.is_dead else None
        if record is not None:
            found[number] = record
    return found


async def addresses(index: Index, family: FamilyFacts) -> tuple[list[str], list[str]]:
    """Return the senders and recipients of the last hour, in hex."""
    if family.growth is None:
        return [], []
    senders, recipients = await index.addresses(family.number, hour_start(family.growth.now_ms))
    return [each.hex() for each in senders], [each.hex() for each in recipients]


def spellings(name: str) -> list[str]:
    """Return an id as given, then with and without angle brackets."""
    bare = name.strip().removeprefix("<").removesuffix(">")
    return list(dict.fromkeys((name, f"<{bare}>", bare))) if bare else [name]


async def labels_of(index: Index, family: FamilyFacts) -> list[tuple[str, Labelling]]:
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


async def _growth(index: Index, document_key: str) -> LabelledGrowth | None:
    family = await stored_family(index, document_key)
    growth = family.growth if family else None
    if growth is None or not growth.marks:
        return None
    before = rate_before(growth.joins, min(unpack_label(packed).given_ms for _, _, packed in growth.marks))
    return LabelledGrowth(before, growth.joined[0], growth.senders, growth.recipients)


def _recorded(index: Index, view: View) -> Recorded | None:
    if view.record is None:
        return None
    return unpack_record(view.record, index.scheme, view.order.version, view.order.observed_ms)
