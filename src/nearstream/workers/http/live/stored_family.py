"""Show a family from the index, where no verdict on it is in memory."""

from collections import Counter
from collections.abc import Sequence

from nearstream.schemas.documents.document import document_key, from_milliseconds
from nearstream.schemas.live.state import LiveFamily, LiveFamilyDetail, LiveMark, LiveMember
from nearstream.streams.matching.family import FamilyFacts
from nearstream.streams.store.record import Recorded
from nearstream.workers.http.live.growth import MARKS, MEMBERS, MINUTE_MS, MINUTES, TEN_MINUTES, marks_of
from nearstream.workers.redis.index.index import RedisIndex
from nearstream.workers.redis.reading.members import members, stored_family

_READ = 400  # members that are read, of a larger family about the newest


async def family_in_index(index: RedisIndex, collection: str, name: str, now_ms: int) -> LiveFamilyDetail | None:
    """Return the family of a document, None if the index does not have the document.

    Args:
        index: The index.
        collection: The collection of the document.
        name: Its id.
        now_ms: The time, in milliseconds since 1970.

    Raises:
        IndexUnavailableError: The server does not answer.
    """
    family = await stored_family(index, document_key(collection, name))
    if family is None:
        return None
    page = await members(index, family, max(family.size - _READ, 0), 2 * _READ)
    marks: Counter[tuple[str, str]] = Counter()
    for each in page.members:
        marks.update(marks_of(each.identity.source, each.url, each.identity.labels or {}))
    common = [LiveMark(name=key, value=value, count=count) for (key, value), count in marks.most_common(MARKS)]
    return LiveFamilyDetail(
        family=_family(family, collection, page.members, now_ms),
        marks=tuple(common),
        verdicts={},
        members=tuple(map(_member, reversed(page.members[-MEMBERS:]))),
        source="index",
    )


def _family(facts: FamilyFacts, collection: str, known: Sequence[Recorded], now_ms: int) -> LiveFamily:
    last = now_ms // MINUTE_MS
    minutes = Counter(each.observed_at_ms // MINUTE_MS for each in known)
    founder = known[0].id if known and facts.size == len(known) else None
    return LiveFamily(
        id=facts.family_id,
        collection=collection,
        founder=founder,
        first_seen=from_milliseconds(facts.first_seen_ms),
        last_joined=from_milliseconds(facts.last_joined_ms or facts.first_seen_ms),
        size=facts.size,
        sites=facts.sites,
        joined_10m=sum(minutes[last - back] for back in range(TEN_MINUTES)),
        joined_1h=facts.joined[0],
        minutes=tuple(minutes[minute] for minute in range(last - MINUTES + 1, last + 1)),
        is_storm=False,
    )


def _member(each: Recorded) -> LiveMember:
    joined_at = from_milliseconds(each.observed_at_ms)
    return LiveMember(id=each.id, version=each.version, verdict=None, resemblance=None, joined_at=joined_at)
