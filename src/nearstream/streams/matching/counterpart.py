"""Which of the earlier documents counts: for the family of a document, and for its verdict."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

from nearstream.schemas.documents.document import MAIL_SOURCE
from nearstream.schemas.documents.evidence import Place, SharedKeys, family_id
from nearstream.schemas.documents.signature import Signature
from nearstream.streams.estimates.comparing import compare
from nearstream.streams.estimates.estimate import Estimate, unpack_estimates
from nearstream.streams.estimates.passages import cover
from nearstream.streams.matching.arriving import Arriving
from nearstream.streams.matching.family import Family, own_sites
from nearstream.streams.matching.protocol.decision import KeyMatch
from nearstream.streams.relations.describe import Related
from nearstream.streams.relations.novelty import Novelty, Source, novelty, removed_spans
from nearstream.streams.relations.rules import COMMON_END, SAME_LINEAGE, Rule, decide
from nearstream.streams.relations.verdict import (
    Verdict,
    first_rule,
    is_copy,
    rule_of_surroundings,
    surroundings_differ,
)
from nearstream.streams.store.record import Comparable, signature_of


class Candidate(NamedTuple):
    """An earlier document that shares a bucket, not yet verified."""

    number: int  # its number in the store
    earlier: Comparable  # the document, with its signature as a record keeps it (`Scheme.kept`)
    match: KeyMatch  # the keys that both share
    anchor_count: int  # number of anchor keys that the earlier document has
    represents: bool = True  # it represents its family: a copy of it joins this family
    comes_before: bool = True  # it was sent before the arriving one


# The relations of verdicts, the best first. A version of the same lineage comes before a containment.
_BEST_FIRST = ("exact_duplicate", "near_duplicate", "", "containment", "rearranged", "version", "overlap")
_RANKS = {relation: place for place, relation in enumerate(_BEST_FIRST)}
_BY_LINEAGE = _RANKS[""]
_CHANGED = ("near_duplicate", "version", "containment")
COVERED_FROM = 0.80  # a text of which this share is in another one has its event, even if many documents have it
WORDS_MIN = 20  # pages of fewer words may differ in title and picture alone
_OVERLAP_FROM = 0.20  # below this share of common symbols, two of three overlaps are boilerplate


@dataclass(frozen=True)
class Compared:
    """An earlier document after the comparison with the arriving one."""

    candidate: Candidate  # the earlier document
    newcomer: Arriving  # the arriving one
    estimate: Estimate  # their estimate
    rule: Rule  # the rule that decided their relation
    is_copy: bool  # their texts are equal or near-duplicates, whatever their lineage
    # Both share only what many documents have, such as the frame of a site, and neither is inside it.
    is_common_text: bool
    lacks: tuple[bool, bool]  # whether buckets were full, and whether candidates were left out

    @cached_property
    def earlier(self) -> Signature:
        """The signature of the earlier document, unpacked on first use."""
        return signature_of(self.candidate.earlier)

    @cached_property
    def pair(self) -> Related:
        """Both documents with all that an event says about them."""
        arriving, earlier, keys = self.newcomer.signature, self.earlier, self.newcomer.keys
        anchors = (len(keys.anchors), self.candidate.anchor_count)
        is_newer = arriving.order > earlier.order
        newer, older = (arriving, earlier) if is_newer else (earlier, arriving)
        anchors = anchors if is_newer else anchors[::-1]
        bands_of = min(len(keys.bands), self.newcomer.scheme.bands.bands)
        match, thresholds = self.candidate.match, self.newcomer.thresholds
        shared = SharedKeys(match.bands, bands_of, match.anchors, *anchors)
        verdict = Verdict(newer, older, self.estimate, self.rule, thresholds, match.in_full_bucket, self.is_common_text)
        return Related(newer, older, shared, self.estimate, verdict, degraded(newer, older, self.lacks))

    @property
    def number(self) -> int:
        """Number of the earlier state."""
        return self.candidate.number

    @property
    def relation(self) -> str:
        """Their relation."""
        return self.rule.relation

    @property
    def is_boilerplate(self) -> bool:
        """Whether both share too little to be related."""
        return self.is_common_text and self.relation == "overlap" and self.estimate.order_free < _OVERLAP_FROM

    @property
    def same_lineage(self) -> bool:
        """Whether both are states of one document or of one lineage."""
        return self.estimate.same_lineage

    @property
    def is_exact(self) -> bool:
        """Whether both texts are equal."""
        return self.estimate.is_equal

    @property
    def comes_before(self) -> bool:
        """Whether the earlier document was sent before the arriving one. This never changes."""
        return self.candidate.comes_before

    @property
    def has_all(self) -> bool:
        """Whether the earlier document has all of the arriving one, and both were read in full.

        A mail has a Subject and attachments beside its text, and what is masked may be nowhere else.
        """
        own = self.newcomer.signature
        if not self.is_exact or self.earlier.raw_digest != own.raw_digest or surroundings_differ(own, self.earlier):
            return False
        is_small = (own.characters // 2 if own.spaceless else own.words) < WORDS_MIN
        return not (
            is_small or own.degraded or self.earlier.degraded or is_mail(own) or self.newcomer.scheme.text.masks
        )

    @property
    def removed_spans(self) -> tuple[Place, ...]:
        """The places of removed text in the earlier document. Empty if the lengths explain the distance."""
        arriving, estimate = self.newcomer.signature, self.estimate
        is_cut = estimate.changed_characters > arriving.characters - self.earlier.characters
        return removed_spans(self.earlier, arriving) if is_cut and self.relation in _CHANGED else ()

    @property
    def rank(self) -> tuple[bool, int, bool, float, tuple[int, str, str]]:
        """The sort key of counterparts, the best first."""
        earlier = self.candidate.earlier
        place = _BY_LINEAGE if self.rule is SAME_LINEAGE else _RANKS[self.rule.relation]
        return (
            self.is_common_text,
            place,
            not self.comes_before,
            -self.estimate.mean_resemblance,  # that of the sketches says nothing of repetition
            (earlier.observed_at_ms, earlier.id, earlier.version),
        )


def compare_with(
    newcomer: Arriving, candidates: Sequence[Candidate], lacks: tuple[bool, bool] = (False, False)
) -> list[Compared]:
    """Compare a document with candidates, in their order. `Compared` says what these may lack."""
    packed, found = compare(newcomer.signature, [candidate.earlier for candidate in candidates]), []
    for candidate, numbers in zip(candidates, unpack_estimates(packed), strict=True):
        decided = decide(numbers, newcomer.thresholds)
        by_text = rule_of_surroundings(decided, numbers, newcomer.signature, candidate.earlier)
        rule, are_copies = first_rule(by_text, numbers), is_copy(by_text)
        is_common = _share_common_text(candidate, numbers, rule, are_copies=are_copies)
        found.append(Compared(candidate, newcomer, numbers, rule, are_copies, is_common, lacks))
    return found


def _share_common_text(candidate: Candidate, estimate: Estimate, rule: Rule, *, are_copies: bool) -> bool:
    if rule is COMMON_END:
        return True
    if candidate.match.shares_rare or are_copies or estimate.same_lineage:
        return False
    return estimate.shared_shorter < COVERED_FROM


def joined(compared: Sequence[Compared]) -> Compared | None:
    """Return the document whose family a new one would join, or None.

    This is one with an equal text, else the best representative, provided that its text is a copy.
    """
    eligible = [each for each in compared if each.is_copy and (each.is_exact or each.candidate.represents)]
    return min(eligible, key=lambda each: (not each.is_exact, not each.candidate.represents, each.rank), default=None)


def degraded(newer: Signature, older: Signature, lacks: tuple[bool, bool] = (False, False)) -> tuple[str, ...]:
    """Return what was incomplete about two documents and about the answer of the index."""
    reasons = {*newer.degraded, *older.degraded}
    reasons.update(
        reason for reason, holds in zip(("bucket_overflow", "candidates_capped"), lacks, strict=True) if holds
    )
    return tuple(sorted(reasons))


def own_family(number: int, arriving: Signature) -> Family:
    """Return the family that a document founds."""
    own_id = family_id(arriving.document_key, arriving.version, arriving.scheme)
    return Family(number, own_id, 1, arriving, arriving.observed_at_ms, own_sites(arriving))


def is_mail(signature: Signature) -> bool:
    """Return whether a document is a mail, whose Subject and attachments are not in its text."""
    return signature.source == MAIL_SOURCE


def covers_of(newcomer: Signature, compared: Sequence[Compared]) -> list[Source]:
    """Return what each of the documents that a document was compared with has of its text."""
    covers = cover(newcomer, [each.candidate.earlier for each in compared])
    return [
        Source(each.candidate.earlier, covered, each.is_common_text)
        for each, covered in zip(compared, covers, strict=True)
    ]


def novelty_of(newcomer: Signature, compared: Sequence[Compared], sources: Sequence[Source] | None = None) -> Novelty:
    """Return how much of a document is new, beside the documents that it was compared with.

    Its `redundant` is the answer of a look-up. A verdict says what the decision about its document says. `sources` is
    what `covers_of` returns for the other documents, if that is known.
    """
    found = novelty(newcomer, covers_of(newcomer, compared) if sources is None else sources)
    return replace(found, redundant=any(each.has_all for each in compared[:1]))
