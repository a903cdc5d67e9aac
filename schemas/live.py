"""What the live page shows: the verdicts of an hour, and families that grow."""

from datetime import datetime
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from nearstream.schemas.alert import Alert
from nearstream.schemas.document import Count, Share
from nearstream.schemas.evidence import ContainmentShares, Distance, DocumentRef, Interval, SharedKeys
from nearstream.schemas.verdict import DocumentVerdict, VerdictKind

Seconds = Annotated[float, Meta(ge=0)]


class LiveMark(msgspec.Struct, frozen=True, kw_only=True):
    """A host, a source or a label that members of a family have."""

    name: Annotated[str, Meta(description="`host`, `source`, or the name of a label.")]
    value: Annotated[str, Meta(description="The host, the source, or the value of the label.")]
    count: Annotated[Count, Meta(description="How many members that joined have it.")]


class LiveMember(msgspec.Struct, frozen=True, kw_only=True):
    """A document that joined a family."""

    id: Annotated[str, Meta(description="Its id.")]
    version: Annotated[str, Meta(description="The first 8 bytes of its digest, in hex.")]
    verdict: Annotated[VerdictKind, Meta(description="What it is to the documents before it.")]
    resemblance: Annotated[
        Share | None, Meta(description="Common shingles over all shingles of it and its counterpart.")
    ]
    joined_at: Annotated[datetime, Meta(description="When its verdict was sent.")]


class LiveFamily(msgspec.Struct, frozen=True, kw_only=True):
    """A family of copies, as far as its verdicts were read."""

    id: Annotated[str, Meta(description="Id of the family, as in verdicts.")]
    collection: Annotated[str, Meta(description="The tenant.")]
    founder: Annotated[str | None, Meta(description="Id of its first document. Null: it was removed or has expired.")]
    first_seen: Annotated[datetime, Meta(description="When its first document was observed.")]
    last_joined: Annotated[datetime, Meta(description="When the last document joined it.")]
    size: Annotated[Count, Meta(description="The largest ordinal of a member: how many documents have joined it.")]
    joined_10m: Annotated[Count, Meta(description="Documents that joined it within the last ten minutes.")]
    joined_1h: Annotated[Count, Meta(description="Documents that joined it within the last hour.")]
    minutes: Annotated[
        tuple[int, ...], Meta(description="Documents that joined in each minute of the last hour, the oldest first.")
    ]
    is_storm: Annotated[
        bool, Meta(description="A `duplicate_storm` of this family has begun and not ended, by the topic of alerts.")
    ]


class LiveFamilyDetail(msgspec.Struct, frozen=True, kw_only=True):
    """A family with where its members come from, and the newest of them."""

    family: Annotated[LiveFamily, Meta(description="Its size and growth.")]
    marks: Annotated[
        tuple[LiveMark, ...], Meta(description="What members that joined have in common, the most frequent first.")
    ]
    verdicts: Annotated[dict[str, int], Meta(description="How many members joined, by verdict.")]
    members: Annotated[tuple[LiveMember, ...], Meta(description="The newest members, at most 40, the last one first.")]


class LiveLag(msgspec.Struct, frozen=True, kw_only=True):
    """How far the workers are behind."""

    records: Annotated[Count, Meta(description="Records that wait for the workers.")]
    seconds: Annotated[Seconds, Meta(description="Age of the oldest of them.")]


class LiveState(msgspec.Struct, frozen=True, kw_only=True):
    """The last hour of a stream."""

    now: Annotated[datetime, Meta(description="The time of the stream.")]
    version: Annotated[str, Meta(description="Release of the server.")]
    collection: Annotated[
        str, Meta(description="The collection. Empty: all. Of a token that is for some only, one of these.")
    ]
    source: Annotated[
        Literal["kafka", "demo"], Meta(description="Where the events come from: Kafka, or a replay in this process.")
    ]
    connected: Annotated[bool, Meta(description="Whether events can be read now: Kafka and Redis answer.")]
    why: Annotated[str, Meta(description="Why they cannot, else empty.")]
    halted: Annotated[tuple[str, ...], Meta(description="Each worker that has halted, with the reason and the remedy.")]
    slot_seconds: Annotated[int, Meta(ge=1, description="Width of a slot of `verdicts` in seconds.")]
    verdicts: Annotated[
        dict[str, tuple[int, ...]],
        Meta(description="Number of verdicts in each slot of the last hour, by kind, the oldest slot first."),
    ]
    totals: Annotated[dict[str, int], Meta(description="Events read since the start, by type and kind of verdict.")]
    per_second: Annotated[float, Meta(description="Verdicts a second, over the last minute.")]
    age_p50: Annotated[
        Seconds | None, Meta(description="Seconds from the observation of a document to its verdict, median.")
    ]
    age_p99: Annotated[Seconds | None, Meta(description="The 99th percentile of the time to a verdict.")]
    lag: Annotated[LiveLag | None, Meta(description="The lag of the workers. Null: it is not known.")]
    largest: Annotated[tuple[LiveFamily, ...], Meta(description="The largest families.")]
    growing: Annotated[
        tuple[LiveFamily, ...], Meta(description="The families that most documents joined in the last ten minutes.")
    ]
    collections: Annotated[tuple[str, ...], Meta(description="Collections that were seen, at most 64.")]
    alerts: Annotated[
        tuple[Alert, ...],
        Meta(description="Alerts that have not ended, and new families of the last hour, the newest first."),
    ]
    is_alerting: Annotated[
        bool | None, Meta(description="Whether a worker `alert` has ever read the verdicts. Null: it is not known.")
    ]
    dead_letters_1h: Annotated[
        Count | None, Meta(description="Records refused within the last hour. Null: the token is for some collections.")
    ]


class LiveReason(msgspec.Struct, frozen=True, kw_only=True):
    """How many records were refused for one reason."""

    reason: Annotated[str, Meta(description="The reason.")]
    count: Annotated[Count, Meta(description="Dead letters that were read.")]
    minutes: Annotated[
        tuple[int, ...], Meta(description="Dead letters in each minute of the last hour, the oldest first.")
    ]
    newest: Annotated[datetime, Meta(description="When the last one was written.")]


class LiveLetter(msgspec.Struct, frozen=True, kw_only=True):
    """A dead letter, without the bytes of its record."""

    id: Annotated[str, Meta(description="Id of the dead letters about this record, 32 hex characters.")]
    reason: Annotated[str, Meta(description="Why the record was refused.")]
    stage: Annotated[str, Meta(description="The step at which it was refused.")]
    detail: Annotated[str, Meta(description="The field with what was expected of it.")]
    topic: Annotated[str, Meta(description="Topic of the record.")]
    partition: Annotated[Count, Meta(description="Its partition.")]
    offset: Annotated[Count, Meta(description="Its offset.")]
    written_at: Annotated[datetime, Meta(description="When the dead letter was written.")]
    worker: Annotated[str, Meta(description="Release and role of the worker that refused it.")]
    size: Annotated[Count, Meta(description="Bytes of its value.")]
    replays: Annotated[Count, Meta(description="How often it had been sent again before.")]


class LiveLetters(msgspec.Struct, frozen=True, kw_only=True):
    """The newest dead letters."""

    why: Annotated[str, Meta(description="Why they cannot be read now, else empty.")]
    reasons: Annotated[tuple[LiveReason, ...], Meta(description="Their reasons, the most frequent first.")]
    letters: Annotated[tuple[LiveLetter, ...], Meta(description="The newest, at most 200, the last one first.")]


class LiveLetterDetail(msgspec.Struct, frozen=True, kw_only=True):
    """A dead letter with the beginning of its record."""

    letter: Annotated[LiveLetter, Meta(description="The dead letter.")]
    sha256: Annotated[str, Meta(description="SHA-256 of the value of the record, in hex.")]
    payload: Annotated[str, Meta(description="What the letter keeps: `full`, `head`, or `hash` for no bytes at all.")]
    key: Annotated[str | None, Meta(description="Key of the record. Bytes that are not UTF-8 are written as \\xNN.")]
    headers: Annotated[tuple[tuple[str, str | None], ...], Meta(description="Headers of the record, as the key.")]
    value: Annotated[str, Meta(description="The first 4,096 bytes of the value, in hex.")]


class LiveReplayRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which refused records to send again."""

    reason: Annotated[str, Meta(min_length=1, max_length=64, description="Those that were refused for this reason.")]
    dry_run: Annotated[bool, Meta(description="Only count what would be sent.")]


class LiveReplay(msgspec.Struct, frozen=True, kw_only=True):
    """What became of refused records that were to be sent again."""

    sent: Annotated[Count, Meta(description="Records that were sent, or that would be.")]
    skipped: Annotated[dict[str, int], Meta(description="Records that were not, by cause.")]


class LiveSetting(msgspec.Struct, frozen=True, kw_only=True):
    """A setting of the server."""

    variable: Annotated[str, Meta(description="Its variable.")]
    value: Annotated[str, Meta(description="Its value. A secret is masked.")]
    default: Annotated[str, Meta(description="Its default.")]
    help: Annotated[str, Meta(description="What it means.")]


class LiveInput(msgspec.Struct, frozen=True, kw_only=True):
    """A topic that workers of a role read."""

    topic: Annotated[str, Meta(description="Name of the topic.")]
    records: Annotated[Count | None, Meta(description="Records that wait. Null: not known, or never read.")]
    seconds: Annotated[Seconds | None, Meta(description="Age of the oldest of them. Null: none waits, or not known.")]


class LiveRole(msgspec.Struct, frozen=True, kw_only=True):
    """What the workers of a role read and write."""

    role: Annotated[str, Meta(description="The role, as in `nearstream worker ROLE`.")]
    group: Annotated[str, Meta(description="Their consumer group.")]
    reads: Annotated[tuple[LiveInput, ...], Meta(description="Topics that they read.")]
    writes: Annotated[tuple[str, ...], Meta(description="Topics to which they write.")]


class LiveDeployment(msgspec.Struct, frozen=True, kw_only=True):
    """The settings of the server, and the way of a record through the topics."""

    version: Annotated[str, Meta(description="Release of the server.")]
    scheme: Annotated[str, Meta(description="The scheme of the signatures.")]
    roles: Annotated[tuple[LiveRole, ...], Meta(description="The roles of workers, in the order of the way.")]
    settings: Annotated[tuple[LiveSetting, ...], Meta(description="All settings of the server.")]


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
    cells: Annotated[tuple[bool, ...], Meta(description="For each slot of the sketch, whether both are equal.")]
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
