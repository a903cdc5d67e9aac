"""What the HTTP API answers to the live page about a pair and about a document."""

from datetime import datetime

import msgspec

from nearstream.schemas.documents.document import Count, Share
from nearstream.schemas.documents.evidence import (
    Comparison,
    ContainmentShares,
    Distance,
    DocumentRef,
    Interval,
    SharedKeys,
    Span,
)
from nearstream.schemas.verdicts.verdict import DocumentVerdict


class LiveSpan(Span, frozen=True, kw_only=True):
    """A common passage of a pair."""

    moved: bool  # It is in another order than the others.


class LiveRule(msgspec.Struct, frozen=True, kw_only=True):
    """A rule with the numbers of two documents. The first one that holds decides."""

    name: str  # Name of the rule.
    relation: str  # The relation that it finds, or `unrelated`.
    holds: bool  # Whether it holds.
    clauses: tuple[tuple[Comparison, ...], ...]  # What has to hold. Of each clause one comparison is enough.


class LivePair(msgspec.Struct, frozen=True, kw_only=True):
    """Two documents and what they share, from their signatures."""

    collection: str  # The tenant.
    newer: DocumentRef  # The newer document.
    older: DocumentRef  # The older document.
    relation: str  # Their relation, or `unrelated`.
    rule: str  # The rule that decided.
    same_lineage: bool  # Whether both are states of one thing.
    resemblance: Interval  # Common shingles over all shingles of both documents.
    containment: ContainmentShares  # Common shingles over those of each.
    distance: Distance  # Estimated edit distance.
    added: Count  # Estimated characters that only the newer document has.
    removed: Count  # Estimated characters that only the older document has.
    keys: SharedKeys | None  # Shared keys. Null: the index keeps too little to say.
    spans: tuple[LiveSpan, ...]  # The longest common passages, at most 64.
    rules: tuple[LiveRule, ...]  # All rules, in the order in which they are tried.
    low_confidence: tuple[str, ...]  # Why the numbers are weak.


class LiveChange(msgspec.Struct, frozen=True, kw_only=True):
    """What a state of a document has changed."""

    relation: str  # Its relation to the state before.
    resemblance: Share  # Common shingles over all shingles of both states.
    added: Count  # Estimated characters that it added.
    removed: Count  # Estimated characters that it removed.


class LiveVersion(msgspec.Struct, frozen=True, kw_only=True):
    """A state of a document."""

    version: str  # The first 8 bytes of its digest, in hex.
    observed_at: datetime  # When it was observed.
    characters: Count  # Characters of its normal form.
    change: LiveChange | None  # What it has changed. Null: the oldest that is known.


class LiveDocument(msgspec.Struct, frozen=True, kw_only=True):
    """A document with its states."""

    collection: str  # The tenant.
    id: str  # Its id.
    verdict: DocumentVerdict | None  # Its last verdict. Null: it is no longer in memory.
    states: tuple[LiveVersion, ...]  # Its states that are stored, the newest first.
