"""What the HTTP API answers to the live page about a pair and about a document."""

from datetime import datetime
from typing import Annotated

import msgspec
from msgspec import Meta

from nearstream.schemas.documents.document import Count, Share
from nearstream.schemas.documents.evidence import ContainmentShares, Distance, DocumentRef, Interval, SharedKeys
from nearstream.schemas.verdicts.verdict import DocumentVerdict


class LiveSpan(msgspec.Struct, frozen=True, kw_only=True):
    """A common passage, as `[start, end)` in characters of both normal forms."""

    newer: Annotated[tuple[int, int], Meta(description="Where it is in the newer document.")]
    older: Annotated[tuple[int, int], Meta(description="Where it is in the older document.")]
    moved: Annotated[bool, Meta(description="It is in another order than the others.")]


class LiveComparison(msgspec.Struct, frozen=True, kw_only=True):
    """A number against its bound."""

    number: Annotated[str, Meta(description="Name of the number.")]
    value: Annotated[float, Meta(description="Its value.")]
    sign: Annotated[str, Meta(description="`<`, `<=`, `>` or `>=`.")]
    threshold: Annotated[str, Meta(description="Name of the bound.")]
    bound: Annotated[float, Meta(description="Its value.")]
    holds: Annotated[bool, Meta(description="Whether the comparison holds.")]


class LiveRule(msgspec.Struct, frozen=True, kw_only=True):
    """A rule with the numbers of two documents. The first one that holds decides."""

    name: Annotated[str, Meta(description="Name of the rule.")]
    relation: Annotated[str, Meta(description="The relation that it finds, or `unrelated`.")]
    holds: Annotated[bool, Meta(description="Whether it holds.")]
    clauses: Annotated[
        tuple[tuple[LiveComparison, ...], ...],
        Meta(description="What has to hold. Of each clause one comparison is enough."),
    ]


class LivePair(msgspec.Struct, frozen=True, kw_only=True):
    """Two documents and what they share, from their signatures."""

    collection: Annotated[str, Meta(description="The tenant.")]
    newer: Annotated[DocumentRef, Meta(description="The newer document.")]
    older: Annotated[DocumentRef, Meta(description="The older document.")]
    relation: Annotated[str, Meta(description="Their relation, or `unrelated`.")]
    rule: Annotated[str, Meta(description="The rule that decided.")]
    same_lineage: Annotated[bool, Meta(description="Whether both are states of one thing.")]
    resemblance: Annotated[Interval, Meta(description="Common shingles over all shingles of both documents.")]
    containment: Annotated[
        ContainmentShares | None,
        Meta(description="Common shingles over those of each. Null: not known in this scheme."),
    ]
    distance: Annotated[Distance | None, Meta(description="Estimated edit distance. Null: not known in this scheme.")]
    added: Annotated[Count | None, Meta(description="Estimated characters that only the newer document has.")]
    removed: Annotated[Count | None, Meta(description="Estimated characters that only the older document has.")]
    keys: Annotated[SharedKeys | None, Meta(description="Shared keys. Null: the index keeps too little to say.")]
    spans: Annotated[tuple[LiveSpan, ...], Meta(description="The longest common passages, at most 64.")]
    rules: Annotated[tuple[LiveRule, ...], Meta(description="All rules, in the order in which they are tried.")]
    low_confidence: Annotated[tuple[str, ...], Meta(description="Why the numbers are weak.")]


class LiveChange(msgspec.Struct, frozen=True, kw_only=True):
    """What a state of a document has changed."""

    relation: Annotated[str, Meta(description="Its relation to the state before.")]
    resemblance: Annotated[Share, Meta(description="Common shingles over all shingles of both states.")]
    added: Annotated[Count | None, Meta(description="Estimated characters that it added. Null: not known.")]
    removed: Annotated[Count | None, Meta(description="Estimated characters that it removed. Null: not known.")]


class LiveVersion(msgspec.Struct, frozen=True, kw_only=True):
    """A state of a document."""

    version: Annotated[str, Meta(description="The first 8 bytes of its digest, in hex.")]
    observed_at: Annotated[datetime, Meta(description="When it was observed.")]
    characters: Annotated[Count, Meta(description="Characters of its normal form.")]
    change: Annotated[LiveChange | None, Meta(description="What it has changed. Null: the oldest that is known.")]


class LiveDocument(msgspec.Struct, frozen=True, kw_only=True):
    """A document with its states."""

    collection: Annotated[str, Meta(description="The tenant.")]
    id: Annotated[str, Meta(description="Its id.")]
    verdict: Annotated[DocumentVerdict | None, Meta(description="Its last verdict. Null: it is no longer in memory.")]
    states: Annotated[tuple[LiveVersion, ...], Meta(description="Its states that are stored, the newest first.")]
