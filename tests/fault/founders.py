"""Families without a founder: which of them the index may make, and how many."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import exp, inf

from nearstream.schemas.document import document_key
from nearstream.schemas.event_id import family_id
from nearstream.schemas.verdict import DocumentVerdict
from tests.fault.families import decode_verdict, place_of
from tests.fault.oracle import Expected
from tests.fault.reading import Read

# Share of families whose founder joined another one while its copies arrived: 9 of 4,719 in runs with three workers. It
# becomes 0 with an index in which nobody joins an undecided document.
FOUNDERLESS = 0.002
CHANCE = 0.001  # share of runs that may fail though nothing is wrong
_NAMED = 5  # verdicts about a family in its description
_RACED = "its founder joined another family while its copies arrived"
_REMOVED = "its founder was removed before it had a verdict"


@dataclass(frozen=True)
class Founderless:
    """A family id without a document of the ordinal 1.

    Attributes:
        members: The verdicts that name it.
        founders: The verdicts about the state whose id it is.
        why: Why the index may make it, or an empty string.
    """

    members: Sequence[DocumentVerdict]
    founders: Sequence[DocumentVerdict]
    why: str

    def __str__(self) -> str:
        """Say who belongs to it, who founded it, and why the index may make it."""
        members, founders = (", ".join(map(_told, told[:_NAMED])) for told in (self.members, self.founders))
        return f"{self.why or 'without an excuse'}: {members}; founded by {founders or 'none with a verdict'}"


def founderless_families(read: Read, expected: Expected) -> int:
    """I10: Count family ids without a founder that have no excuse, and those with one that chance does not explain."""
    excuses = [bool(each.why) for each in founderless(read, expected)]
    families = _families(_last_verdicts(read)).values()
    large = sum(any(each.family.ordinal > 1 for each in members) for members in families)
    return excuses.count(False) + max(0, excuses.count(True) - most_by_chance(FOUNDERLESS * large))


def founderless(read: Read, expected: Expected) -> list[Founderless]:
    """Return the families that a consumer who groups by `family.id` meets without a document of the ordinal 1."""
    verdicts, removed = _last_verdicts(read), _founded_by_removed(expected)
    founded = defaultdict[str, list[DocumentVerdict]](list)
    for each in verdicts:
        founded[family_id(document_key(each.collection, each.id), each.version, each.scheme)].append(each)
    found = []
    for name, members in _families(verdicts).items():
        if all(each.family.ordinal > 1 for each in members):
            founders = founded.get(name, [])
            why = _REMOVED if not founders and name in removed else _why_it_joined(read, members, founders)
            found.append(Founderless(members, founders, why))
    return found


def most_by_chance(mean: float) -> int:
    """Return the smallest count that rare things of this mean exceed in less than `CHANCE` of all runs."""
    count, share = 0, exp(-mean)  # Poisson's law
    more = 1 - share
    while more >= CHANCE:
        count += 1
        share *= mean / count
        more -= share
    return count


def _why_it_joined(read: Read, members: Sequence[DocumentVerdict], founders: Sequence[DocumentVerdict]) -> str:
    """Return the excuse of a family whose founder joined another one, if it has one.

    Once it is decided that a document joins a family, nobody joins the one with its own id. So each member must have
    been sent before the founder had a verdict.
    """
    ids = {each.event_id for each in founders if each.family.id != members[0].family.id and each.family.ordinal > 1}
    if not ids or len(ids) < len(founders):
        return ""
    told_ms = min(record.timestamp_ms for name, record in read.verdicts if name in ids)
    sent_ms = {(record.partition, record.offset): record.timestamp_ms for record in read.documents}
    first_ms = defaultdict[str, float](lambda: inf)
    for each in members:
        first_ms[each.id] = min(first_ms[each.id], sent_ms.get(place_of(each), inf))
    return _RACED if max(first_ms.values()) <= told_ms else ""


def _families(verdicts: Iterable[DocumentVerdict]) -> Mapping[str, list[DocumentVerdict]]:
    families = defaultdict[str, list[DocumentVerdict]](list)
    for verdict in verdicts:
        families[verdict.family.id].append(verdict)
    return families


def _last_verdicts(read: Read) -> list[DocumentVerdict]:
    return [decode_verdict(record.value or b"") for record in dict(read.verdicts).values()]


def _founded_by_removed(expected: Expected) -> set[str]:
    """Return the ids of the families that documents would have founded that were removed at some time."""
    removed = set(expected.removed.values())
    return {
        family_id(each.document_key, each.version, each.scheme)
        for each in expected.signatures.values()
        if each.document_key in removed
    }


def _told(verdict: DocumentVerdict) -> str:
    key, place, family = document_key(verdict.collection, verdict.id), place_of(verdict), verdict.family
    return f"{key} {verdict.version} {verdict.verdict} {place}: {family.id} {family.ordinal}"
