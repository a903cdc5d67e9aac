"""A family in memory: who belongs to it, who represents it, and how fast it grows."""

from dataclasses import dataclass

import msgspec

from nearstream.schemas.documents.document import ADDRESS_BYTES
from nearstream.streams.store.limits import (
    ADDRESSES_CAP,
    HOUR_MS,
    LABELS_CAP,
    LINKS_CAP,
    SITES_CAP,
    SLOT_MS,
    WEEK_MS,
    WINDOWS_MS,
)
from nearstream.streams.store.messages import LINK_BYTES, FamilyView, Join
from nearstream.streams.store.tables import Members


def hour_start(now_ms: int) -> int:
    """Return the time from which on joins belong to the last hour.

    It is the beginning of a slot in which joins are counted, so no family has more senders than joins.
    """
    return ((now_ms - HOUR_MS) // SLOT_MS + 1) * SLOT_MS


@dataclass(frozen=True)
class Growth:
    """Size and growth of a family."""

    family_id: bytes  # 16 bytes
    founder: int  # number of the state that founded it
    representative: int  # number of the state that represents it, 0 if none lives
    size: int  # members that live
    first_seen_ms: int  # when the founder was observed, in milliseconds since 1970
    last_ms: int  # when the last member joined, by the time of the store
    now_ms: int  # the time of this answer
    # How many joined within each slot of `SLOT_MS` of the last week: time divided by its length, and count.
    joins: tuple[tuple[int, int], ...]
    senders: int = 0  # distinct senders of the mails that joined within the last hour, at most 256
    recipients: int = 0  # distinct recipients of these, at most 256
    # Labelled documents that joined it: hash of the document key, number, label.
    marks: tuple[tuple[bytes, int, bytes], ...] = ()
    sites: int = 0  # distinct sites of all that have joined, at most `SITES_CAP`

    @property
    def joined(self) -> tuple[int, int, int]:
        """How many joined within the last hour, day and week."""
        hour, day, week = (
            sum(count for slot, count in self.joins if slot > (self.now_ms - window) // SLOT_MS)
            for window in WINDOWS_MS
        )
        return hour, day, week


class Facts(msgspec.Struct, array_like=True):
    """What is known of a family beside its members."""

    representative: int  # the state that represents it, 0 if none lives
    last_ms: int  # when the last state joined, by the time of the store
    family_id: bytes = b""  # 16 bytes, empty before the first join
    first_seen_ms: int = 0  # when the founder was observed, 0 before the first join
    is_bare: bool = False  # the representative took the place of another and may be in few buckets
    ordinals: int = 1  # how many were given
    links: dict[bytes, int] = {}  # who had each link first
    joins: dict[int, int] = {}  # by slot of time
    senders: dict[bytes, int] = {}  # by address, when the last one joined
    recipients: dict[bytes, int] = {}
    marks: dict[bytes, tuple[int, bytes]] = {}  # labelled documents
    sites: dict[bytes, int] = {}  # the ordinal of the first member of each


class Family:
    """A family that a second member, or a link to another family, has made known.

    Attributes:
        facts: What is known beside its members.
        members: Its members.
    """

    def __init__(self, founder: int, facts: Facts, members: Members) -> None:
        self._founder = founder
        self.facts, self.members = facts, members

    def view(self, asker: int) -> FamilyView:
        """Return what others need to know of it, with the ordinal of one of them."""
        ordinal, _ = self.members.place(asker)
        sites = self._count_sites(ordinal)
        facts = self.facts
        return FamilyView(facts.representative, facts.is_bare, ordinal, facts.family_id, facts.first_seen_ms, sites)

    def join(self, join: Join, now_ms: int) -> FamilyView:
        """Count a member once."""
        number, known = join.number, self.facts.links
        if not self.facts.family_id:
            self.facts.family_id, self.facts.first_seen_ms = join.family_id, join.first_seen_ms
            self._add_site(join.first_site, 1)
        has_left = self._place(join, now_ms)
        links = [join.links[at : at + LINK_BYTES] for at in range(0, len(join.links), LINK_BYTES)]
        for link in links:
            if link not in known and len(known) < LINKS_CAP:
                known[link] = number
        if join.is_dead:
            self.leave(number)
        elif not has_left:
            self._represent(number, is_full=join.is_full)
        return self.view(number)._replace(new_links=tuple(known.get(link, number) == number for link in links))

    def _place(self, join: Join, now_ms: int) -> bool:
        """Give a member its ordinal, and return whether the member had died before."""
        before, has_left = self.members.place(join.number)
        known = before or self.members.place(join.instead)[0]  # another state of a document keeps its place
        ordinal = join.ordinal or known or max(self.facts.ordinals, join.ordinals) + 1
        self.facts.ordinals = max(self.facts.ordinals, join.ordinals, ordinal)
        if not known:
            self._grow(join, now_ms)
            self._add_site(join.site, ordinal)
        if before != ordinal:
            self.facts.last_ms = max(now_ms, self.facts.last_ms)
            self.members.put(join.number, ordinal, has_left)
        return has_left

    def leave(self, number: int) -> int:
        """Note that a member has died, also before it joins, and return who represents the family."""
        ordinal, _ = self.members.place(number)
        self.members.put(number, ordinal, has_left=True)
        if self.facts.representative == number:
            # The newest, because older ones may have expired, which nobody has told the family.
            self.facts.representative = next(iter(self.members.newest(1)), 0)
            self.facts.is_bare = True
        return self.facts.representative

    def forget(self, number: int) -> None:
        """Forget a member that nothing is left of."""
        if number != self.facts.representative:
            self.members.forget(number)

    def return_of(self, founder: int) -> None:
        """Take back that the founder has died."""
        ordinal, _ = self.members.place(founder)
        self.members.put(founder, ordinal, has_left=False)

    def mark(self, document: bytes, number: int, label: bytes) -> None:
        """Remember a labelled document, or forget it if its label is empty."""
        marks = self.facts.marks
        marks.pop(document, None)
        if label:
            marks[document] = number, label
        while len(marks) > LABELS_CAP:
            del marks[next(iter(marks))]

    def growth(self, now_ms: int) -> Growth:
        """Return its size and how it grows."""
        facts, since_ms = self.facts, hour_start(now_ms)
        senders, recipients = (
            sum(at >= since_ms for at in seen.values()) for seen in (facts.senders, facts.recipients)
        )
        return Growth(
            facts.family_id,
            self._founder,
            facts.representative,
            self.members.count(),
            facts.first_seen_ms,
            facts.last_ms,
            now_ms,
            tuple(facts.joins.items()),
            senders,
            recipients,
            tuple((document, number, label) for document, (number, label) in facts.marks.items()),
            len(facts.sites),
        )

    def _add_site(self, site: bytes, ordinal: int) -> None:
        if site and len(self.facts.sites) < SITES_CAP:
            self.facts.sites[site] = min(ordinal, self.facts.sites.get(site, ordinal))

    def _count_sites(self, ordinal: int) -> int:
        """Return how many sites had a member when that of an ordinal joined."""
        return sum(first <= ordinal for first in self.facts.sites.values())

    def _represent(self, number: int, *, is_full: bool) -> None:
        facts = self.facts
        if not facts.representative:
            facts.representative, facts.is_bare = number, not is_full
        elif facts.is_bare and is_full:
            facts.representative, facts.is_bare = number, False

    def _grow(self, join: Join, now_ms: int) -> None:
        """Count a join in its slot of time, and drop the slots that no window reaches."""
        joins, slot = self.facts.joins, now_ms // SLOT_MS
        joins[slot] = joins.get(slot, 0) + 1
        for old in [each for each in joins if each <= (now_ms - WEEK_MS) // SLOT_MS]:
            del joins[old]
        for seen, packed in ((self.facts.senders, join.sender), (self.facts.recipients, join.recipients)):
            for at in range(0, len(packed), ADDRESS_BYTES):
                address = packed[at : at + ADDRESS_BYTES]
                seen.pop(address, None)
                seen[address] = now_ms
            while seen and (len(seen) > ADDRESSES_CAP or next(iter(seen.values())) < hour_start(now_ms)):
                del seen[next(iter(seen))]
