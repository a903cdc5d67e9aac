"""Verdict: how two documents are related, why, and where its numbers are weak."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

from nearstream.schemas.documents.document import (
    ATTACHMENTS_LABEL,
    ATTACHMENTS_UNREAD,
    LINKS_LABEL,
    LINKS_UNREAD,
    SENDER_DOMAIN_LABEL,
    SURROUNDINGS_LABEL,
)
from nearstream.schemas.documents.signature import Signature
from nearstream.streams.estimates.comparing import fields_of, reach_table, text_of
from nearstream.streams.estimates.estimate import Estimate
from nearstream.streams.estimates.passages import PLACES
from nearstream.streams.fingerprints.parameters import LD_WINDOW_BYTES
from nearstream.streams.native import native
from nearstream.streams.relations.rules import (
    COMMON_END,
    COVERED,
    EQUAL_DIGEST,
    EQUAL_MAIN_CONTENT,
    OWN_PASSAGE,
    SAME_LINEAGE,
    SCATTERED_NOISE,
    Relation,
    Rule,
    decide,
    is_near_threshold,
)
from nearstream.streams.relations.thresholds import DEFAULT_THRESHOLDS, Thresholds
from nearstream.streams.store.record import Comparable

MANY_SIBLINGS = "many_siblings"
COMMON_TEXT = "common_text"
ATTACHMENTS_DIFFER = "attachments_differ"
ATTACHMENTS_NOT_COMPARED = "attachments_not_compared"
LINKS_DIFFER = "links_differ"
SURROUNDINGS_DIFFER = "surroundings_differ"
BELOW_MIN_LENGTH = "below_min_length"
NEAR_THRESHOLD = "near_threshold"
SHINGLES_MIN = 40  # below this, one word more or less moves every share by several percent
_SYMBOLS_MIN = 30
_OWN_CHARACTERS, _OWN_SHARE = 48, 0.055
_CHARACTERS_MAX = 100_000  # length of the longest texts on which the thresholds were measured


@dataclass(frozen=True)
class Verdict:
    """How two documents are related, and why.

    What only events say is computed on first use.
    """

    newer: Signature = field(repr=False, compare=False)  # the larger of both by (observed_at, id, position, version)
    older: Signature = field(repr=False, compare=False)  # the other one
    estimate: Estimate  # their estimate
    decided_by: Rule  # the rule that decided
    bounds: Thresholds = field(repr=False)  # the thresholds of all rules
    many_siblings: bool = False  # other documents like these may be missing, because a shared bucket was full
    common_text: bool = False  # what both share is text that many documents have

    @property
    def relation(self) -> Relation:
        """The relation. `unrelated` makes no event."""
        return self.decided_by.relation

    @property
    def rule(self) -> str:
        """The name of the rule that decided."""
        return self.decided_by.name

    @property
    def thresholds(self) -> dict[str, float]:
        """All thresholds in the condition of the rule, name to value."""
        return {name: float(getattr(self.bounds, name)) for name in self.decided_by.thresholds}

    @property
    def inner(self) -> Literal["newer", "older"] | None:
        """Which document lies inside the other, for a containment."""
        if self.decided_by is not COVERED:
            return None
        return "newer" if self.newer.digest == self.estimate.shorter_digest else "older"

    @property
    def same_lineage(self) -> bool:
        """Whether both are states of one document or of one lineage."""
        return self.estimate.same_lineage

    @cached_property
    def low_confidence(self) -> tuple[str, ...]:
        """Reasons why the numbers are weak, if they are."""
        reasons = low_confidence_reasons((self.newer, self.older), self.estimate, self.decided_by, self.bounds)
        reasons = (*reasons, MANY_SIBLINGS) if self.many_siblings else reasons
        reasons = (*reasons, *self._beside()) if is_copy(self.decided_by) else reasons
        reasons = (*reasons, SURROUNDINGS_DIFFER) if self._surroundings_differ else reasons
        return (*reasons, COMMON_TEXT) if self.common_text else reasons

    def _beside(self) -> Iterator[str]:
        """Yield what is said of the attachments and links of two copies."""
        attached, linked = (
            {text.labels.get(name) for text in (self.newer, self.older)} for name in (ATTACHMENTS_LABEL, LINKS_LABEL)
        )
        if len(attached) > 1 or ATTACHMENTS_UNREAD in attached:
            yield ATTACHMENTS_NOT_COMPARED if ATTACHMENTS_UNREAD in attached else ATTACHMENTS_DIFFER
        if len(linked) > 1 and LINKS_UNREAD not in linked:
            yield LINKS_DIFFER

    @property
    def _surroundings_differ(self) -> bool:
        """Whether two pages have one main content, and show other texts beside it."""
        return self.estimate.is_equal and surroundings_differ(self.newer, self.older)


def relate(
    newer: Signature, older: Signature, estimate: Estimate, thresholds: Thresholds = DEFAULT_THRESHOLDS
) -> Verdict:
    """Return the verdict of the first rule that holds.

    The newer document is the larger one by (observed_at, id, position, version).
    """
    by_text = rule_of_surroundings(decide(estimate, thresholds), estimate, newer, older)
    return Verdict(newer, older, estimate, first_rule(by_text, estimate), thresholds)


def first_rule(by_text: Rule, estimate: Estimate) -> Rule:
    """Return the first rule that holds, of the rule that two texts decide and that of lineage."""
    return SAME_LINEAGE if estimate.same_lineage and by_text is not EQUAL_DIGEST else by_text


def rule_of_surroundings(by_text: Rule, estimate: Estimate, one: Signature, other: Comparable) -> Rule:
    """Return the rule of two texts, or that of mails and pages around them.

    This is `common_end` for mails and pages that share only their end, `own_passage` for pages of one host that each
    have a passage of their own, and `equal_main_content` for pages that show other texts beside an equal main content.
    The other text is unpacked only if that has to be.
    """
    if by_text is EQUAL_DIGEST:
        return EQUAL_MAIN_CONTENT if surroundings_differ(one, other) else by_text
    if by_text.relation not in ("near_duplicate", "version"):
        return by_text
    if have_other_texts_above(estimate, one, other):
        return COMMON_END
    return OWN_PASSAGE if estimate.same_site and have_own_passages(estimate, one, other) else by_text


def surroundings_differ(one: Comparable, other: Comparable) -> bool:
    """Return whether two pages show different texts beside their main contents."""
    return one.labels.get(SURROUNDINGS_LABEL) != other.labels.get(SURROUNDINGS_LABEL)


def is_copy(by_text: Rule) -> bool:
    """Return whether two texts are equal or near-duplicates, by the rule that they decide."""
    return by_text.relation in ("exact_duplicate", "near_duplicate")


def low_confidence_reasons(
    texts: tuple[Signature, Signature], estimate: Estimate, rule: Rule, thresholds: Thresholds
) -> tuple[str, ...]:
    """Return the reasons for low confidence that hold.

    Equal digests give no reason, because no number decides and all numbers are exact.
    """
    if estimate.is_equal:
        return ()
    reasons = {
        BELOW_MIN_LENGTH: min(text.shingles for text in texts) < SHINGLES_MIN,
        "few_symbols": estimate.symbols_shorter < _SYMBOLS_MIN,
        NEAR_THRESHOLD: is_near_threshold(estimate, rule, thresholds),
        "char_noise": estimate.scattered or rule is SCATTERED_NOISE,
        "long_text": estimate.longer_characters > _CHARACTERS_MAX,
        "no_word_breaks": any(text.spaceless for text in texts),
    }
    return tuple(reason for reason, holds in reasons.items() if holds)


def have_other_texts_above(estimate: Estimate, one: Signature, other: Comparable) -> bool:
    """Return whether two mails of one domain, or pages of one host, share nothing above a common end.

    Each has a text of 48 bytes or more above that end, of which no sampled window is in the other one. The end has at
    most 1.5 KiB, such as the notice of an office, or the offer of a publisher below the first words of each story.
    Nothing has to be learned for this, so it holds for the first two mails of an office too.
    """
    domain = one.labels.get(SENDER_DOMAIN_LABEL)
    if not estimate.same_site and (domain is None or domain != other.labels.get(SENDER_DOMAIN_LABEL)):
        return False
    return native.share_only_an_end(fields_of(one), text_of(other))


def have_own_passages(estimate: Estimate, one: Signature, other: Comparable) -> bool:
    """Return whether each of two texts has a passage at one place that the other one has not.

    It has 48 characters or more besides what is not sampled at its ends, and .055 of the text. An example is the short
    article of a page below the navigation of its site.
    """
    changes = native.common_text(fields_of(one), text_of(other), estimate.same_lineage, reach_table)[3]
    least = max(_OWN_CHARACTERS + 2 * estimate.rate, _OWN_SHARE * estimate.longer_characters)
    first, last, other_first = 0, -_OWN_CHARACTERS, 0
    for start, end, at, other_end in PLACES.iter_unpack(changes):
        if start - last > LD_WINDOW_BYTES:  # more than one window in common, which may be chance
            first, other_first = start, at
        last = end
        if min(last - first, other_end - other_first) >= least:
            return True
    return False
