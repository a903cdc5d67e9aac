"""Say what a document is to those in an index, without adding it."""

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import cast

from msgspec.structs import asdict

from nearstream.schemas.checks.check import (
    Attached,
    CheckAnswer,
    CheckVerdict,
    Contained,
    KnownDocument,
    KnownReference,
    Labels,
)
from nearstream.schemas.documents.document import SENDER_DOMAIN_LABEL, from_milliseconds
from nearstream.schemas.documents.evidence import Relation
from nearstream.schemas.documents.signature import Signature
from nearstream.streams.fingerprints.parameters import TextRules
from nearstream.streams.matching.counterpart import Compared as Counterpart
from nearstream.streams.matching.counterpart import is_mail
from nearstream.streams.matching.family import FamilyFacts
from nearstream.streams.matching.labels import NO_LABELS, FamilyDetails
from nearstream.streams.matching.looking_up import Found, reference_match, share_of
from nearstream.streams.matching.reach import CLEARLY, Reach, n_words, of_one_domain, reach
from nearstream.streams.relations.describe import distance, resemblance
from nearstream.streams.relations.novelty import novelty_in_text
from nearstream.streams.relations.verdict import BELOW_MIN_LENGTH, SHINGLES_MIN
from nearstream.streams.store.limits import DAY_MS, HOUR_MS

_NO_DETAILS = FamilyDetails()
_PASSAGE_WORDS = 60  # of a labelled text in a mail: footers have fewer
_DOMAINS_MIN = 3  # that sent mails with an attachment, where the asked one is that of a labelled mail
_PASSAGE_SHARE = 0.35  # of the shorter text
_SPREAD_MIN = 8  # domains that sent a passage within a day


def found_in_text(found: Found, text: str, rules: TextRules) -> Found:
    """Return what a document is, with the places of its new text in its text (see `novelty_in_text`)."""
    return replace(found, novelty=novelty_in_text(found.novelty, text, rules))


def _sharing(found: Found) -> Iterator[Counterpart]:
    """Yield the earlier mails of which a mail, which is no copy of these, has a passage."""
    own = found.newcomer.signature
    for each in found.related:
        share, earlier = each.estimate.shared_shorter, each.earlier
        is_long = share * min(n_words(own), n_words(earlier)) >= _PASSAGE_WORDS
        # The long footer of a firm is in all of its mails.
        is_footer = each.is_common_text and of_one_domain(own, earlier)
        if share >= _PASSAGE_SHARE and is_long and not (each.is_copy or is_footer):
            yield each


def passages(found: Found) -> Iterator[FamilyFacts]:
    """Yield the labelled families of which a mail, which is no copy, has a passage."""
    families = (found.families[each.number] for each in _sharing(found))
    return (facts for facts in families if facts.growth is not None and facts.growth.marks)


def spread(found: Found, now_ms: int) -> Contained | None:
    """Return the passage that a mail, which is no copy, shares with mails of many domains of the last day.

    Of a wave whose mails have words of their own each mail is a family, so no family grows. The mails that a look-up
    compares are counted.
    """
    recent = [each for each in _sharing(found) if now_ms - _arrived_ms(each) <= DAY_MS]
    if found.family or len({each.earlier.labels.get(SENDER_DOMAIN_LABEL) for each in recent} - {None}) < _SPREAD_MIN:
        return None
    most = max(recent, key=_shared_characters)
    hour = sum(now_ms - _arrived_ms(each) <= HOUR_MS for each in recent)
    return _contained_in(found.families[most.number], (hour, len(recent)), _shared_characters(most), NO_LABELS)


def with_labels(found: Found, facts: FamilyFacts, details: FamilyDetails) -> Contained | None:
    """Return the labelled text in a mail, None if its labels do not reach the mail."""
    reached = reach(found.newcomer.signature, details)
    if details.label_state == "suspended" or reached.known not in ("known_bad", "near_bad"):
        return None
    held = max((each for each in found.related if found.families[each.number] is facts), key=share_of)
    return _contained_in(facts, facts.joined[:2], _shared_characters(held), reached.labels)


def _contained_in(facts: FamilyFacts, counts: tuple[int, int], characters: int, labels: Labels) -> Contained:
    hour, day = counts
    return Contained(family=facts.family_id, count_1h=hour, count_24h=day, characters=characters, labels=labels)


def _arrived_ms(held: Counterpart) -> int:
    earlier = held.candidate.earlier
    return earlier.sent_at_ms or earlier.observed_at_ms


def _shared_characters(held: Counterpart) -> int:
    return round(held.estimate.shared_shorter * min(held.earlier.characters, held.newcomer.signature.characters))


def attached(found: Found, count: int, details: FamilyDetails) -> Attached | None:
    """Return the mails with the attachments of a mail, and their labels that reach it."""
    reached = reach(found.newcomer.signature, details)
    spams = details.of("spam")
    domains = {each.labels.get(SENDER_DOMAIN_LABEL) for each in (*spams, *details.others)}
    # The picture of a firm is in all of its mails.
    is_own = any(of_one_domain(found.newcomer.signature, each) for each in spams) and len(domains) < _DOMAINS_MIN
    reaches = reached.known in ("known_bad", "near_bad") and not is_own
    return Attached(count=count, labels=reached.labels if reaches else NO_LABELS) if count else None


def known_reference(
    found: Found, details: FamilyDetails = _NO_DETAILS, labelled: Contained | None = None
) -> KnownReference | None:
    """Return the most similar document of a reference collection, with labels that reach a document.

    They are those of the family of which it is a copy, else those of a text of which it has a passage.
    """
    match, known = reference_match(found), _known(found, details)
    own = known.labels if known.known != "disputed" else NO_LABELS
    labels = own if known.known or labelled is None else labelled.labels
    return KnownReference(**asdict(match), labels=labels) if match else None


def _contained(found: Found, bulk_count: int) -> Contained | None:
    """Return the text in a document that has most copies, None if none has `bulk_count` within a day."""
    held = [(found.families[each.number], each) for each in found.holds]
    many = [(facts.joined[1], facts, each) for facts, each in held if facts.joined[1] >= bulk_count]
    if not many:
        return None
    _, facts, most = max(many, key=lambda one: (one[0], share_of(one[2])))
    return _contained_in(facts, facts.joined[:2], round(share_of(most) * most.earlier.characters), NO_LABELS)


def answer(
    found: Found,
    bulk_count: int,
    details: FamilyDetails = _NO_DETAILS,
    labelled: Contained | None = None,
    files: Attached | None = None,
) -> CheckAnswer:
    """Build the answer about a document. From `bulk_count` copies within an hour on it is bulk."""
    best, family, known = found.best, found.family, _known(found, details)
    count = family.joined[0] if family else 0
    numbers = resemblance(best.estimate) if best else None
    hour, day, week = family.joined if family else (0, 0, 0)
    return CheckAnswer(
        verdict=known.known or _verdict(found, count >= bulk_count),
        relation=cast(Relation, best.relation) if best else None,
        resemblance=numbers.value if numbers else None,
        low=numbers.low if numbers else None,
        high=numbers.high if numbers else None,
        distance=distance(best.estimate).value if best else None,
        removed_spans=best.removed_spans if best else (),
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
        witness=known.witness,
        unlabelled=known.unlabelled,
        label_state=details.label_state,
        contains=labelled or _contained(found, bulk_count),
        attachments=files,
        first_seen=from_milliseconds(family.first_seen_ms) if family else None,
        last_seen=from_milliseconds(family.last_joined_ms) if family else None,
        score=round(math.tanh(math.e * count / bulk_count), 4),
        scheme=found.newcomer.signature.scheme,
        low_confidence=best.pair.verdict.low_confidence if best else _weak(found),
        **vars(found.novelty),
    )


def _verdict(found: Found, is_bulk: bool) -> CheckVerdict:
    if found.best is not None and found.best.is_copy:
        return "bulk" if is_bulk else "near_duplicate"
    # Without bands and anchors only an equal text can be found.
    keys = found.newcomer.keys
    return "none" if found.best is not None or keys.bands or keys.anchors else "unknown"


def _known(found: Found, details: FamilyDetails) -> Reach:
    """Return what labels say of a copy.

    Documents other than mails have no senders, so labels reach all of them.
    """
    labels, own = details.labels, found.newcomer.signature
    if found.best is None or not found.best.is_copy or details.label_state == "suspended":
        return Reach()
    if is_mail(own):
        return reach(own, details)
    if labels.spam and labels.spam >= CLEARLY * labels.ham:
        return Reach("known_bad", labels=labels)
    return Reach("known_good" if labels.ham and labels.ham >= CLEARLY * labels.spam else None, labels=labels)


def _weak(found: Found) -> tuple[str, ...]:
    return (BELOW_MIN_LENGTH,) if found.newcomer.signature.shingles < SHINGLES_MIN else ()


def _match(earlier: Signature) -> KnownDocument:
    return KnownDocument(id=earlier.id, version=earlier.version, observed_at=from_milliseconds(earlier.observed_at_ms))
