"""Say what a document is to those in an index, without adding it."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from msgspec import UNSET

from nearstream.schemas.check import CheckAnswer, CheckMatch, CheckVerdict, Contained, Labels
from nearstream.schemas.document import from_milliseconds
from nearstream.schemas.evidence import Relation
from nearstream.schemas.signature import Signature
from nearstream.streams.counterpart import Compared, Newcomer, compare_with, joined, novelty_of
from nearstream.streams.fingerprints.hashing import HashKey
from nearstream.streams.index.candidate import Candidate
from nearstream.streams.index.details import FamilyDetails
from nearstream.streams.index.family import FamilyFacts
from nearstream.streams.relations.describe import distance, resemblance
from nearstream.streams.relations.novelty import Novelty
from nearstream.streams.relations.thresholds import Thresholds
from nearstream.streams.relations.verdict import BELOW_MIN_LENGTH, SHINGLES_MIN
from nearstream.streams.signing.scheme import Scheme

_NO_DETAILS = FamilyDetails()
_CLEARLY = 3  # times the weight of the other side
_COVERING = 16  # related documents of which is asked what they have
_NEVER_COMPLETE = (False, False)  # whether buckets were full and candidates cut, which a look-up does not say


def newcomer(signature: Signature, scheme: Scheme, key: HashKey, thresholds: Thresholds) -> Newcomer:
    """Return a document with the keys under which the index knows others like it.

    Raises:
        ValueError: The normal form is empty, or the signature belongs to another scheme.
    """
    return Newcomer(scheme.kept(signature), scheme.keys(signature, key), scheme, thresholds, _NEVER_COMPLETE)


@dataclass(frozen=True)
class Found:
    """What a document is to the candidates that an index gave for its keys.

    Attributes:
        newcomer: The document.
        best: The most closely related candidate. None: there is no related one.
        novelty: What is new in it. None: the scheme has no LD signatures.
        joins: The candidate whose family the document would join. None: it is no copy.
        holds: The candidates whose texts lie in the document, which is no copy of them.
    """

    newcomer: Newcomer
    best: Compared | None
    novelty: Novelty | None
    joins: Compared | None
    holds: tuple[Compared, ...] = ()


def find(asked: Newcomer, candidates: Sequence[Candidate]) -> Found:
    """Compare a document with its candidates.

    Those of other collections are left out, because a store may shorten keys. A stored state of the document itself
    counts like any other document.
    """
    own = asked.signature.collection
    compared = compare_with(asked, [each for each in candidates if each.earlier.collection == own])
    related = [each for each in compared if each.relation != "unrelated" and not each.is_boilerplate]
    related.sort(key=lambda each: each.rank)
    new = novelty_of(asked.signature, related[:_COVERING])
    holds = tuple(each for each in compared if not each.is_copy and _share_of(each) >= asked.thresholds.containment_min)
    return Found(asked, related[0] if related else None, new, joined(related, 0), holds)


def contained(found: Found, families: Mapping[int, FamilyFacts], bulk_count: int) -> Contained | None:
    """Return the text in a document that has most copies, None if none has many.

    Args:
        found: What the document is to the documents of the index.
        families: The family of each candidate, by the number of the candidate.
        bulk_count: Number of copies within a day from which there are many.
    """
    held = [(families[each.number], each) for each in found.holds]
    many = [(facts.joined[1], facts, each) for facts, each in held if facts.joined[1] >= bulk_count]
    if not many:
        return None
    _, facts, most = max(many, key=lambda one: (one[0], _share_of(one[2])))
    hour, day, _ = facts.joined
    characters = round(_share_of(most) * most.candidate.signature.characters)
    return Contained(family=facts.family_id, count_1h=hour, count_24h=day, characters=characters)


def _share_of(compared: Compared) -> float:
    """Return how much of the earlier text lies in the document."""
    estimate = compared.estimate
    if estimate.is_short:
        return 0.0
    is_shorter = estimate.shorter_digest == compared.candidate.signature.digest
    return estimate.shared_shorter if is_shorter else estimate.containment_longer.value


def answer(
    found: Found,
    family: FamilyFacts | None,
    bulk_count: int,
    details: FamilyDetails = _NO_DETAILS,
    contains: Contained | None = None,
) -> CheckAnswer:
    """Build the answer about a document.

    Args:
        found: What it is to the documents of the index.
        family: The family that it would join. None: it is no copy.
        bulk_count: Number of copies within an hour from which it is bulk.
        details: What else is known about that family.
        contains: A text with many copies that lies in it.
    """
    best, count = found.best, family.joined[0] if family else 0
    numbers, symbols = (resemblance(best.estimate), distance(best.estimate)) if best else (None, UNSET)
    hour, day, week = family.joined if family else (0, 0, 0)
    new = found.novelty
    return CheckAnswer(
        verdict=_verdict(found, count >= bulk_count, details),
        relation=cast(Relation, best.relation) if best else None,
        resemblance=numbers.value if numbers else None,
        low=numbers.low if numbers else None,
        high=numbers.high if numbers else None,
        distance=symbols.value if symbols else None,
        added=new.added if new else None,
        novel=new.novel if new else None,
        novel_spans=new.novel_spans if new else (),
        sources=new.sources if new else (),
        common=new.common if new else 0,
        redundant=new is not None and new.redundant,
        match=_match(best.candidate.signature) if best else None,
        family=family.family_id if family else None,
        size=family.size if family else 0,
        count_1h=hour,
        count_24h=day,
        count_7d=week,
        distinct_senders_1h=details.senders,
        distinct_recipients_1h=details.recipients,
        labels=Labels(spam=details.labels.spam, ham=details.labels.ham),
        label_state=details.label_state,
        contains=contains,
        first_seen=from_milliseconds(family.first_seen_ms) if family else None,
        last_seen=from_milliseconds(family.last_joined_ms) if family else None,
        score=round(math.tanh(math.e * count / bulk_count), 4),
        scheme=found.newcomer.signature.scheme,
        low_confidence=best.pair.verdict.low_confidence if best else _weak(found),
    )


def _verdict(found: Found, is_bulk: bool, details: FamilyDetails) -> CheckVerdict:
    if found.best is not None and found.best.is_copy:
        return _known(details) or ("bulk" if is_bulk else "near_duplicate")
    # Without bands and anchors only an equal text can be found.
    keys = found.newcomer.keys
    return "none" if found.best is not None or keys.bands or keys.anchors else "unknown"


def _known(details: FamilyDetails) -> CheckVerdict | None:
    """Return the label of a copy, None if none counts clearly."""
    labels = details.labels
    if details.label_state == "suspended":
        return None
    if labels.spam and labels.spam >= _CLEARLY * labels.ham:
        return "known_bad"
    return "known_good" if labels.ham and labels.ham >= _CLEARLY * labels.spam else None


def _weak(found: Found) -> tuple[str, ...]:
    return (BELOW_MIN_LENGTH,) if found.newcomer.signature.shingles < SHINGLES_MIN else ()


def _match(earlier: Signature) -> CheckMatch:
    return CheckMatch(id=earlier.id, version=earlier.version, observed_at=from_milliseconds(earlier.observed_at_ms))
