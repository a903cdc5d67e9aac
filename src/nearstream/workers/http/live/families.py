"""Follow families of copies: how fast each grows, and where its members come from."""

import heapq
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

from msgspec import UNSET

from nearstream.schemas.documents.document import document_key, from_milliseconds
from nearstream.schemas.live.state import LiveFamily, LiveFamilyDetail, LiveMark, LiveMember
from nearstream.schemas.verdicts.verdict import DocumentVerdict
from nearstream.workers.redis.reading.members import Index, members, stored_family

FAMILIES = 2_000
MEMBERS = 40
MARKS = 64  # of a family. Others are not counted.
_ORDINALS = 200_000  # of a family. A member with a larger one counts as new, also if it is another state of a member.
MINUTE_MS, MINUTES, TEN_MINUTES = 60_000, 60, 10
_HOST_CHARACTERS = 253
_READ = 400  # members that are read, of a larger family about the newest


@dataclass
class _Family:
    id: str
    collection: str
    founder: str | None
    first_seen_ms: int
    last_ms: int = 0
    size: int = 1
    sites: int = 0
    minutes: Counter[int] = field(default_factory=Counter)
    marks: Counter[tuple[str, str]] = field(default_factory=Counter)
    verdicts: Counter[str] = field(default_factory=Counter)
    members: OrderedDict[str, LiveMember] = field(default_factory=OrderedDict)
    seen: bytearray = field(default_factory=bytearray)  # a bit for each ordinal

    def is_new(self, ordinal: int) -> bool:
        """Return whether an ordinal comes for the first time, and remember it.

        Another state of a member keeps its ordinal, and the partitions of the topic are read in any order.
        """
        if ordinal >= _ORDINALS:
            return True
        place, bit = ordinal // 8, 1 << ordinal % 8
        self.seen.extend(bytes(max(place + 1 - len(self.seen), 0)))
        was_seen = self.seen[place] & bit
        self.seen[place] |= bit
        return not was_seen

    def joined(self, now_ms: int, minutes: int) -> int:
        """Return how many joined within the last minutes, the running one included."""
        now = now_ms // MINUTE_MS
        return sum(count for minute, count in self.minutes.items() if now - minutes < minute <= now)


class Growth:
    """The families that documents joined last, at most `FAMILIES`."""

    def __init__(self, is_storm: Callable[[str, str], bool]) -> None:
        """Start without families. `is_storm` tells of a collection and the id of a family whether that is a storm."""
        self._is_storm = is_storm
        self._families: OrderedDict[str, _Family] = OrderedDict()  # the one that was joined last is at the end

    def add(self, verdict: DocumentVerdict, at_ms: int) -> None:
        """Count a document that joined a family, once for each ordinal."""
        if verdict.family.ordinal < 2 or verdict.verdict == "unchanged":
            return
        family = self._families.get(verdict.family.id)
        if family is None:
            family = self._families[verdict.family.id] = _new(verdict)
            if len(self._families) > FAMILIES:
                self._families.popitem(last=False)
        self._families.move_to_end(verdict.family.id)
        family.size = max(family.size, verdict.family.ordinal)
        family.sites = max(family.sites, verdict.family.sites)
        family.last_ms = max(family.last_ms, at_ms)
        if family.is_new(verdict.family.ordinal):
            _count(family, verdict, at_ms)
        family.members[verdict.id] = _member(verdict, at_ms)
        family.members.move_to_end(verdict.id)
        if len(family.members) > MEMBERS:
            family.members.popitem(last=False)

    def remove(self, collection: str, name: str) -> None:
        """Forget the id of a document that was removed."""
        for family in self._families.values():
            if family.collection == collection:
                family.members.pop(name, None)
                family.founder = None if family.founder == name else family.founder

    def largest(self, now_ms: int, count: int, collection: str) -> tuple[LiveFamily, ...]:
        """Return the largest families of a collection, or of all if it is empty."""
        found = heapq.nlargest(count, self._of(collection), key=lambda family: (family.size, family.id))
        return tuple(self._shown(family, now_ms) for family in found)

    def growing(self, now_ms: int, count: int, collection: str) -> tuple[LiveFamily, ...]:
        """Return the families that most documents joined in the last ten minutes."""
        ranked = [(family.joined(now_ms, TEN_MINUTES), family.size, family.id) for family in self._of(collection)]
        found = heapq.nlargest(count, (rank for rank in ranked if rank[0]))
        return tuple(self._shown(self._families[rank[2]], now_ms) for rank in found)

    def detail(self, own_id: str, now_ms: int, collections: frozenset[str]) -> LiveFamilyDetail | None:
        """Return a family, None if it is not known or its collection is none of these. Empty: all."""
        family = self._families.get(own_id)
        if family is None or (collections and family.collection not in collections):
            return None
        return _detail(family, self._shown(family, now_ms), "verdicts")

    def shown(self, own_ids: Iterable[str], now_ms: int) -> tuple[LiveFamily, ...]:
        """Return those of these families that are known."""
        known = (self._families.get(own_id) for own_id in own_ids)
        return tuple(self._shown(family, now_ms) for family in known if family is not None)

    def _of(self, collection: str) -> Iterator[_Family]:
        return (family for family in self._families.values() if collection in ("", family.collection))

    def _shown(self, family: _Family, now_ms: int) -> LiveFamily:
        return _shown(family, now_ms, self._is_storm(family.collection, family.id))


def _shown(family: _Family, now_ms: int, is_storm: bool) -> LiveFamily:
    last = now_ms // MINUTE_MS
    return LiveFamily(
        id=family.id,
        collection=family.collection,
        founder=family.founder,
        first_seen=from_milliseconds(family.first_seen_ms),
        last_joined=from_milliseconds(family.last_ms),
        size=family.size,
        sites=family.sites,
        joined_10m=family.joined(now_ms, TEN_MINUTES),
        joined_1h=family.joined(now_ms, MINUTES),
        minutes=tuple(family.minutes[minute] for minute in range(last - MINUTES + 1, last + 1)),
        is_storm=is_storm,
    )


def _detail(family: _Family, shown: LiveFamily, source: Literal["verdicts", "index"]) -> LiveFamilyDetail:
    common = family.marks.most_common(MARKS)
    return LiveFamilyDetail(
        family=shown,
        marks=tuple(LiveMark(name=name, value=value, count=count) for (name, value), count in common),
        verdicts=dict(family.verdicts),
        members=tuple(reversed(family.members.values())),
        source=source,
    )


def _new(verdict: DocumentVerdict) -> _Family:
    family = verdict.family
    first_seen_ms = int(family.first_seen.timestamp() * 1000)
    return _Family(family.id, verdict.collection, family.founder.id if family.founder else None, first_seen_ms)


def _count(family: _Family, verdict: DocumentVerdict, at_ms: int) -> None:
    minute = at_ms // MINUTE_MS
    family.minutes[minute] += 1
    for old in [number for number in family.minutes if number <= minute - MINUTES]:
        del family.minutes[old]
    family.verdicts[verdict.verdict] += 1
    for mark in marks_of(verdict.source, verdict.url, verdict.labels):
        if mark in family.marks or len(family.marks) < MARKS:
            family.marks[mark] += 1


def marks_of(source: str | None, url: str | None, labels: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield the source and the host of a document, and its labels."""
    if source:
        yield "source", source
    if url:
        yield "host", url.partition("://")[2].partition("/")[0][:_HOST_CHARACTERS]
    yield from labels.items()


def _member(verdict: DocumentVerdict, at_ms: int) -> LiveMember:
    return LiveMember(
        id=verdict.id,
        version=verdict.version,
        verdict=verdict.verdict,
        resemblance=None if verdict.resemblance is UNSET else verdict.resemblance.value,
        joined_at=from_milliseconds(at_ms),
    )


async def family_in_index(index: Index, collection: str, name: str, now_ms: int) -> LiveFamilyDetail | None:
    """Return the family of a document, None if the index does not have the document."""
    facts = await stored_family(index, document_key(collection, name))
    if facts is None:
        return None
    known, _ = await members(index, facts, max(facts.size - _READ, 0), 2 * _READ)
    founder = known[0].id if known and facts.size == len(known) else None
    last_ms = facts.last_joined_ms or facts.first_seen_ms
    family = _Family(facts.family_id, collection, founder, facts.first_seen_ms, last_ms, facts.size, facts.sites)
    for each in known:
        family.minutes[each.observed_at_ms // MINUTE_MS] += 1
        family.marks.update(marks_of(each.identity.source, each.url, each.identity.labels or {}))
    for each in known[-MEMBERS:]:
        joined_at = from_milliseconds(each.observed_at_ms)
        family.members[each.id] = LiveMember(
            id=each.id, version=each.version, verdict=None, resemblance=None, joined_at=joined_at
        )
    return _detail(family, _shown(family, now_ms, is_storm=False), "index")
