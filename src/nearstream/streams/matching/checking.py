"""Say what a document is to those in an index, without adding it."""

import math
from dataclasses import replace
from typing import cast

from msgspec import UNSET

from nearstream.schemas.checks.check import CheckAnswer, CheckMatch, CheckVerdict, Contained
from nearstream.schemas.documents.document import from_milliseconds
from nearstream.schemas.documents.evidence import Relation
from nearstream.schemas.documents.signature import Signature
from nearstream.streams.fingerprints.parameters import TextRules
from nearstream.streams.matching.labels import FamilyDetails
from nearstream.streams.matching.looking_up import Found, share_of
from nearstream.streams.relations.describe import distance, resemblance
from nearstream.streams.relations.novelty import novelty_in_text
from nearstream.streams.relations.verdict import BELOW_MIN_LENGTH, SHINGLES_MIN

_NO_DETAILS = FamilyDetails()
_CLEARLY = 3  # times the weight of the other side


def found_in_text(found: Found, text: str, rules: TextRules) -> Found:
    """Return what a document is, with the places of its new text in its text (see `novelty_in_text`)."""
    return found if found.novelty is None else replace(found, novelty=novelty_in_text(found.novelty, text, rules))


def _contained(found: Found, bulk_count: int) -> Contained | None:
    """Return the text in a document that has most copies, None if none has `bulk_count` within a day."""
    held = [(found.families[each.number], each) for each in found.holds]
    many = [(facts.joined[1], facts, each) for facts, each in held if facts.joined[1] >= bulk_count]
    if not many:
        return None
    _, facts, most = max(many, key=lambda one: (one[0], share_of(one[2])))
    hour, day, _ = facts.joined
    characters = round(share_of(most) * most.earlier.characters)
    return Contained(family=facts.family_id, count_1h=hour, count_24h=day, characters=characters)


def answer(found: Found, bulk_count: int, details: FamilyDetails = _NO_DETAILS) -> CheckAnswer:
    """Build the answer about a document. From `bulk_count` copies within an hour on it is bulk."""
    best, family = found.best, found.family
    count = family.joined[0] if family else 0
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
        match=_match(best.earlier) if best else None,
        family=family.family_id if family else None,
        size=family.size if family else 0,
        sites=family.sites if family else 0,
        count_1h=hour,
        count_24h=day,
        count_7d=week,
        distinct_senders_1h=details.senders,
        distinct_recipients_1h=details.recipients,
        labels=details.labels,
        label_state=details.label_state,
        contains=_contained(found, bulk_count),
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
