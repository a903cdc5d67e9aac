"""What the live page shows: the verdicts of an hour, and families that grow."""

from datetime import datetime
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from nearstream.schemas.alerts.alert import Alert, AlertName, OfCollections, Silence
from nearstream.schemas.documents.document import Count, Share, Word
from nearstream.schemas.verdicts.verdict import VerdictKind

Seconds = Annotated[float, Meta(ge=0)]

Hours = Annotated[int, Meta(ge=0, le=168)]
WorkerStateName = Literal["starting", "live", "catching_up", "paused", "halted", "gone"]


class LiveMark(msgspec.Struct, frozen=True, kw_only=True):
    """A host, a source or a label that members of a family have."""

    name: Annotated[str, Meta(description="`host`, `source`, or the name of a label.")]
    value: Annotated[str, Meta(description="The host, the source, or the value of the label.")]
    count: Annotated[Count, Meta(description="How many members that joined have it.")]


class LiveMember(msgspec.Struct, frozen=True, kw_only=True):
    """A document that joined a family."""

    id: Annotated[str, Meta(description="Its id.")]
    version: Annotated[str, Meta(description="The first 8 bytes of its digest, in hex.")]
    verdict: Annotated[
        VerdictKind | None, Meta(description="What it is to the documents before it. Null: only its verdict says it.")
    ]
    resemblance: Annotated[
        Share | None, Meta(description="Common shingles over all shingles of it and its counterpart.")
    ]
    joined_at: Annotated[datetime, Meta(description="When its verdict was sent. From the index: when it was observed.")]


class LiveFamily(msgspec.Struct, frozen=True, kw_only=True):
    """A family of copies, as far as its verdicts were read."""

    id: Annotated[str, Meta(description="Id of the family, as in verdicts.")]
    collection: Annotated[str, Meta(description="The tenant.")]
    founder: Annotated[str | None, Meta(description="Id of its first document. Null: it was removed or has expired.")]
    first_seen: Annotated[datetime, Meta(description="When its first document was observed.")]
    last_joined: Annotated[datetime, Meta(description="When the last document joined it.")]
    size: Annotated[Count, Meta(description="The largest ordinal of a member: how many documents have joined it.")]
    sites: Annotated[
        Count, Meta(description="Sites that have carried one of them, by the public suffix list, at most 256.")
    ]
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
    source: Annotated[
        Literal["verdicts", "index"],
        Meta(description="From what this was taken: the verdicts in memory, or the index where there are none."),
    ]


class LiveLag(msgspec.Struct, frozen=True, kw_only=True):
    """How far the workers are behind."""

    records: Annotated[Count, Meta(description="Records that wait for the workers.")]
    seconds: Annotated[Seconds, Meta(description="Age of the oldest of them.")]
    trend: Annotated[
        Literal["none", "falling", "steady", "growing"],
        Meta(description="How their number moves, over a minute. `none`: at most a second's worth of records waits."),
    ]


class LiveWorker(msgspec.Struct, frozen=True, kw_only=True):
    """A worker and how it does."""

    worker: Annotated[str, Meta(description="Its host and process id.")]
    role: Annotated[str, Meta(description="Its role.")]
    group: Annotated[str, Meta(description="Its consumer group.")]
    state: Annotated[WorkerStateName, Meta(description="Its state.")]
    since: Annotated[
        datetime, Meta(description="When this state began. Of a worker that is gone: when it was seen last.")
    ]
    why: Annotated[str, Meta(description="The reason of the state, empty if it has none.")]


class LiveNewText(msgspec.Struct, frozen=True, kw_only=True):
    """How much of the text of a collection was new within the last hour."""

    collection: Annotated[str, Meta(description="The tenant.")]
    characters: Annotated[Count, Meta(description="Characters of the documents whose verdicts say what is new.")]
    novel: Annotated[Count, Meta(description="Those that no document has which these verdicts and their events name.")]


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
    troubles: Annotated[
        tuple[str, ...], Meta(description="What stands still, with the reason and the remedy: workers, unread topics.")
    ]
    workers: Annotated[
        tuple[LiveWorker, ...], Meta(description="The workers. Empty also for a token that is for some collections.")
    ]
    slot_seconds: Annotated[int, Meta(ge=1, description="Width of a slot of `verdicts` in seconds.")]
    verdicts: Annotated[
        dict[str, tuple[int, ...]],
        Meta(description="Number of verdicts in each slot of the last hour, by kind, the oldest slot first."),
    ]
    totals: Annotated[dict[str, int], Meta(description="Events read since the start, by type and kind of verdict.")]
    per_second: Annotated[float, Meta(description="Verdicts a second, over the last minute.")]
    new_text: Annotated[
        tuple[LiveNewText, ...], Meta(description="How much text was new, by collection, the one with most text first.")
    ]
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
    loading: Annotated[Share | None, Meta(description="Share of the last hour that is read after a start. Null: all.")]
    day: Annotated[
        tuple[int, ...], Meta(description="Verdicts of all collections in each half hour of a day. Empty: not known.")
    ]
    alarmed: Annotated[tuple[LiveFamily, ...], Meta(description="The families of `alerts` that are in memory.")]
    alerts: Annotated[
        tuple[Alert, ...],
        Meta(description="Alerts that have not ended, and new families of the last hour, the newest first."),
    ]
    silences: Annotated[tuple[Silence, ...], Meta(description="What was said about `alerts` that are silent now.")]
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
    came_from: Annotated[str, Meta(description="Where it came from: a sender's domain, a site or a collection.")]
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


class LiveSilenceRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Say that an alert was seen, or keep its subject silent."""

    collection: Annotated[OfCollections, Meta(description="The tenant of the alert, `*` for all.")]
    name: Annotated[AlertName, Meta(description="Name of the alert.")]
    subject: Annotated[Word, Meta(description="What it is about.")]
    hours: Annotated[
        Hours | None,
        Meta(description="How long it is to be silent. 0: no longer. Null: the alert was seen."),
    ]


class LiveReplay(msgspec.Struct, frozen=True, kw_only=True):
    """What became of refused records that were to be sent again."""

    sent: Annotated[Count, Meta(description="Records that were sent, or that would be.")]
    skipped: Annotated[dict[str, int], Meta(description="Records that were not, by cause.")]
