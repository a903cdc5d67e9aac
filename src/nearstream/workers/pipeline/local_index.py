"""An index in this process, read as one on Redis is."""

from collections.abc import Sequence
from dataclasses import dataclass

from nearstream.schemas.documents.signature import Signature
from nearstream.streams.matching.arriving import Arriving
from nearstream.streams.matching.labels import FamilyDetails, details_of
from nearstream.streams.matching.looking_up import Neighbours, look_up_all, with_attachments
from nearstream.streams.store.families import Growth
from nearstream.streams.store.limits import WALK, IndexState
from nearstream.streams.store.messages import Query
from nearstream.streams.store.part import Part
from nearstream.streams.store.record import unpack_signature
from nearstream.streams.store.registration import document_hash
from nearstream.streams.store.store import Store


@dataclass(frozen=True)
class LocalIndex:
    """An index in this process."""

    part: Part  # its one slot
    reading: Store  # its store
    scheme: str  # the name of its scheme

    def store(self) -> Store:
        """Return its store."""
        return self.reading

    async def state(self) -> IndexState:
        """Return that it can be trusted."""
        return IndexState.READY

    async def reopen(self) -> None:
        """Do nothing, since it is never lost."""

    async def neighbours_of(self, asked: Sequence[Arriving], now_ms: int = 0) -> list[Neighbours]:
        """Return the neighbours of each document, at least one, with their families."""
        return await look_up_all(self.reading, asked, now_ms)

    async def details(self, growth: Growth, delay_ms: int) -> FamilyDetails:
        """Return the details of a family that was found. Labels count from the age `delay_ms` on."""
        return await details_of(self.reading, self.scheme, growth, delay_ms)

    async def attached(self, asked: Arriving, delay_ms: int) -> tuple[int, FamilyDetails]:
        """Return how many mails have the attachments of one, and the labels of some (see `with_attachments`)."""
        return await with_attachments(self.reading, asked, delay_ms)

    async def current_number(self, document_key: str) -> int:
        """Return the number of the current state of a document, 0 without it."""
        return self.part.history.current.get(document_hash(document_key)) or 0

    async def page(self, founder: int, first: int, last: int, most: int) -> list[tuple[int, int]]:
        """Return members of a family that live, with their ordinals, from one ordinal to another."""
        family = self.part.families.get(founder)
        return family.members.page(first, last, most) if family else []

    async def newest(self, founder: int, most: int) -> list[int]:
        """Return the members of a family that live and joined last, the last one first."""
        family = self.part.families.get(founder)
        return family.members.newest(most) if family else []

    async def addresses(self, founder: int, since_ms: int) -> tuple[list[bytes], list[bytes]]:
        """Return the senders and recipients of mails that joined a family since a time."""
        family = self.part.families.get(founder)
        known = (family.facts.senders, family.facts.recipients) if family else ({}, {})
        senders, recipients = ([each for each, at in seen.items() if at >= since_ms] for seen in known)
        return senders, recipients

    async def states(self, document_key: str) -> list[Signature]:
        """Return the states of a document, the last one first."""
        found, number = list[Signature](), await self.current_number(document_key)
        while number and len(found) < WALK:
            (view,) = await self.reading.fetch([Query(number, record=True)])
            if view is None or view.record is None:
                break
            found.append(unpack_signature(view.record, self.scheme, view.order.version, view.order.observed_ms))
            number = self.part.history.states[number].before
        return found
