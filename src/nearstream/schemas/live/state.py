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

    name: str  # `host`, `source`, or the name of a label.
    value: str  # The host, the source, or the value of the label.
    count: Count  # How many members that joined have it.


class LiveMember(msgspec.Struct, frozen=True, kw_only=True):
    """A document that joined a family."""

    id: str  # Its id.
    version: str  # The first 8 bytes of its digest, in hex.
    verdict: VerdictKind | None  # What it is to the documents before it. Null: only its verdict says it.
    resemblance: Share | None  # Common shingles over all shingles of it and its counterpart.
    joined_at: datetime  # When its verdict was sent. From the index: when it was observed.


class LiveFamily(msgspec.Struct, frozen=True, kw_only=True):
    """A family of copies, as far as its verdicts were read."""

    id: str  # Id of the family, as in verdicts.
    collection: str  # The tenant.
    founder: str | None  # Id of its first document. Null: it was removed or has expired.
    first_seen: datetime  # When its first document was observed.
    last_joined: datetime  # When the last document joined it.
    size: Count  # The largest ordinal of a member: how many documents have joined it.
    sites: Count  # Sites that have carried one of them, by the public suffix list, at most 256.
    joined_10m: Count  # Documents that joined it within the last ten minutes.
    joined_1h: Count  # Documents that joined it within the last hour.
    minutes: tuple[int, ...]  # Documents that joined in each minute of the last hour, the oldest first.
    is_storm: bool  # A `duplicate_storm` of this family has begun and not ended, by the topic of alerts.


class LiveFamilyDetail(msgspec.Struct, frozen=True, kw_only=True):
    """A family with where its members come from, and the newest of them."""

    family: LiveFamily  # Its size and growth.
    marks: tuple[LiveMark, ...]  # What members that joined have in common, the most frequent first.
    verdicts: dict[str, int]  # How many members joined, by verdict.
    members: tuple[LiveMember, ...]  # The newest members, at most 40, the last one first.
    # From what this was taken: the verdicts in memory, or the index where there are none.
    source: Literal["verdicts", "index"]


class LiveLag(msgspec.Struct, frozen=True, kw_only=True):
    """How far the workers are behind."""

    records: Count  # Records that wait for the workers.
    seconds: Seconds  # Age of the oldest of them.


class WorkerState(msgspec.Struct, frozen=True, kw_only=True):
    """A worker and how it does."""

    worker: str  # Its host and process id.
    role: str  # Its role.
    group: str  # Its consumer group.
    # `starting`: it has no assignment yet. `live`: it reads what comes. `catching_up`: records have waited for long.
    # `paused`: a service is away. `halted`: a limit of dead letters was exceeded. `gone`: it has died.
    state: WorkerStateName
    since: datetime  # When this state began. Of a worker that is gone: when it was seen last.
    why: str  # The reason of the state, empty if it has none.


class LiveNewText(msgspec.Struct, frozen=True, kw_only=True):
    """How much of the text of a collection was new within the last hour."""

    collection: str  # The tenant.
    characters: Count  # Characters of the documents whose verdicts say what is new.
    novel: Count  # Those that no document has which these verdicts and their events name.


class LiveState(msgspec.Struct, frozen=True, kw_only=True):
    """The last hour of a stream."""

    now: datetime  # The time of the stream.
    version: str  # Release of the server.
    collection: str  # The collection. Empty: all. Of a token that is for some only, one of these.
    source: Literal["kafka", "file"]  # Where the events come from: Kafka, or this process.
    connected: bool  # Whether events can be read now: Kafka and Redis answer.
    why: str  # Why they cannot, else empty.
    troubles: tuple[str, ...]  # What stands still, with the reason and the remedy: workers, unread topics.
    workers: tuple[WorkerState, ...]  # The workers. Empty also for a token that is for some collections.
    slot_seconds: Annotated[int, Meta(ge=1)]  # Width of a slot of `verdicts` in seconds.
    # Number of verdicts in each slot of the last hour, by kind, the oldest slot first.
    verdicts: dict[str, tuple[int, ...]]
    totals: dict[str, int]  # Events read since the start, by type and kind of verdict.
    per_second: float  # Verdicts a second, over the last minute.
    new_text: tuple[LiveNewText, ...]  # How much text was new, by collection, the one with most text first.
    age_p50: Seconds | None  # Seconds from the observation of a document to its verdict, median.
    age_p99: Seconds | None  # The 99th percentile of the time to a verdict.
    lag: LiveLag | None  # The lag of the workers. Null: it is not known.
    largest: tuple[LiveFamily, ...]  # The largest families.
    growing: tuple[LiveFamily, ...]  # The families that most documents joined in the last ten minutes.
    collections: tuple[str, ...]  # Collections that were seen, at most 64.
    loading: Share | None  # Share of the last hour that is read after a start. Null: all.
    alarmed: tuple[LiveFamily, ...]  # The families of `alerts` that are in memory.
    alerts: tuple[Alert, ...]  # Alerts that have not ended, and new families of the last hour, the newest first.
    silences: tuple[Silence, ...]  # What was said about `alerts` that are silent now.
    is_alerting: bool | None  # Whether a worker `alert` has ever read the verdicts. Null: it is not known.
    dead_letters_1h: Count | None  # Records refused within the last hour. Null: the token is for some collections.


class LiveReason(msgspec.Struct, frozen=True, kw_only=True):
    """How many records were refused for one reason."""

    reason: str  # The reason.
    count: Count  # Dead letters that were read.
    minutes: tuple[int, ...]  # Dead letters in each minute of the last hour, the oldest first.
    newest: datetime  # When the last one was written.


class LiveLetter(msgspec.Struct, frozen=True, kw_only=True):
    """A dead letter, without the bytes of its record."""

    id: str  # Id of the dead letters about this record, 32 hex characters.
    reason: str  # Why the record was refused.
    stage: str  # The step at which it was refused.
    detail: str  # The field with what was expected of it.
    came_from: str  # Where it came from: a sender's domain, a site or a collection.
    topic: str  # Topic of the record.
    partition: Count  # Its partition.
    offset: Count  # Its offset.
    written_at: datetime  # When the dead letter was written.
    worker: str  # Release and role of the worker that refused it.
    size: Count  # Bytes of its value.
    replays: Count  # How often it had been sent again before.


class LiveLetters(msgspec.Struct, frozen=True, kw_only=True):
    """The newest dead letters."""

    why: str  # Why they cannot be read now, else empty.
    reasons: tuple[LiveReason, ...]  # Their reasons, the most frequent first.
    letters: tuple[LiveLetter, ...]  # The newest, at most 200, the last one first.


class LiveLetterDetail(msgspec.Struct, frozen=True, kw_only=True):
    """A dead letter with the beginning of its record."""

    letter: LiveLetter  # The dead letter.
    sha256: str  # SHA-256 of the value of the record, in hex.
    payload: str  # What the letter keeps: `full`, `head`, or `hash` for no bytes at all.
    key: str | None  # Key of the record. Bytes that are not UTF-8 are written as \xNN.
    headers: tuple[tuple[str, str | None], ...]  # Headers of the record, as the key.
    value: str  # The first 4,096 bytes of the value, in hex.


class LiveReplayRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which refused records to send again."""

    reason: Annotated[str, Meta(min_length=1, max_length=64)]  # Those that were refused for this reason.
    dry_run: bool  # Only count what would be sent.


class LiveSilenceRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Say that an alert was seen, or keep its subject silent."""

    collection: OfCollections  # The tenant of the alert, `*` for all.
    name: AlertName  # Name of the alert.
    subject: Word  # What it is about.
    hours: Hours | None  # How long it is to be silent. 0: no longer. Null: the alert was seen.


class LiveReplay(msgspec.Struct, frozen=True, kw_only=True):
    """What became of refused records that were to be sent again."""

    sent: Count  # Records that were sent, or that would be.
    skipped: dict[str, int]  # Records that were not, by cause.
