"""Messages of the HTTP API: answers, refusals, and requests of labels."""

from datetime import datetime
from typing import Annotated, Literal, get_args

import msgspec
from msgspec import Meta

from nearstream.schemas.documents.document import DEFAULT_COLLECTION, AddressHash, Count, Id, Name, Share, Url
from nearstream.schemas.documents.evidence import Amount, HexId, Place, ReferenceMatch, Relation, SourceRef
from nearstream.schemas.documents.signature import Signature
from nearstream.schemas.labels.decision import Action, Because
from nearstream.schemas.labels.label import Kind, LabelKind, LabelState, Weight

CheckVerdict = Literal["known_bad", "near_bad", "known_good", "disputed", "bulk", "near_duplicate", "none", "unknown"]
Witness = Literal["", "equal", "broad", "near", "link", "attachment", "established"]
CheckReason = Literal["", "deadline", "index_unavailable", "index_lost", "index_refused"]
SkipReason = Literal["", "deadline", "index_unavailable", "index_refused"]
CHECK_VERDICTS: tuple[str, ...] = get_args(CheckVerdict)

LearnReason = Literal["", "deadline", "kafka_unavailable", "outbox_full", "kafka_refused", "index_unavailable"]


class KnownDocument(msgspec.Struct, frozen=True, kw_only=True):
    """A document of the index."""

    id: str  # Its id.
    version: str  # The first 8 bytes of its digest, in hex.
    observed_at: datetime  # When it was observed.


class Labels(msgspec.Struct, frozen=True, kw_only=True):
    """The labels of a family that are old enough to count."""

    spam: Count  # Sum of the weights of its documents labelled as spam.
    ham: Count  # Sum of the weights of its documents labelled as ham.


class Contained(msgspec.Struct, frozen=True, kw_only=True):
    """A text with many copies that lies in the document."""

    family: HexId  # Id of the family of its copies.
    count_1h: Count  # Documents that joined this family within the last hour.
    count_24h: Count  # Documents that joined this family within the last day.
    characters: Count  # How many characters of it the document has, estimated.
    labels: Labels  # The labels of this family that reach the document (see `witness`).


class Attached(msgspec.Struct, frozen=True, kw_only=True):
    """Earlier mails that have the attachments of a mail."""

    count: Count  # How many, at most 100. Equal mails count once.
    labels: Labels  # Labels of the first and last 16 of them that reach the mail.


class KnownReference(ReferenceMatch, frozen=True, kw_only=True):
    """The most similar document of a reference collection, with labels."""

    labels: Labels  # The labels of its family that reach the document (see `witness`).


class CheckAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """What a document is to those that the index knows. Every field is always there."""

    # `known_bad`: a copy, and spam has at least three times the weight of ham among the labels of its family that reach
    # it. `near_bad`: so, but it only resembles labelled mail of few senders, or a form that many use. `known_good`: ham
    # has. `disputed`: spam has, but ten times as many older members of the family have no label. `bulk`: another copy,
    # of which at least NEARSTREAM_BULK_COUNT arrived within the last hour. `near_duplicate`: another copy, equal or
    # nearly equal. `none`: no copy of anything known. `unknown`: there is no answer, because it is degraded or the text
    # is too short.
    verdict: CheckVerdict
    relation: Relation | None = None  # How the document relates to `match`. Null: to no known document.
    resemblance: Share | None = None  # Common shingles over all shingles of both documents.
    low: Share | None = None  # Lower end of the 95 % interval of `resemblance`.
    high: Share | None = None  # Upper end of the 95 % interval of `resemblance`.
    distance: Count | None = None  # Estimated edit distance in characters. Null without `match`.
    added: Amount | None = None  # Estimated characters that `match` does not have. Null without `match`.
    # Estimated characters that none of the related documents has that the index found. Text counts as known from a run
    # of eight common words on. Null if there is no answer.
    novel: Amount | None = None
    # Where these are, at most 32, the longest first, as `[start, end)` in characters of the text as it was sent, of a
    # page in the text read from it, and of a mail or a signature in its normal form.
    novel_spans: tuple[Place, ...] = ()
    # Where `match` has what the document has no more, at most 32, the longest first, as `[start, end)` in characters of
    # the normal form of `match`. Empty but for near_duplicate, version and containment.
    removed_spans: tuple[Place, ...] = ()
    # The fewest documents that together have the rest, at most 5, the largest part first.
    sources: tuple[SourceRef, ...] = ()
    common: Count = 0  # Characters that are known only from text that many documents have.
    # `match` has all of it: both texts are equal and were read in full. Never true of new text.
    redundant: bool = False
    match: KnownDocument | None = None  # The earlier document that is most like this one.
    family: str | None = None  # Id of the family of copies that the document would join. Null: it is no copy.
    size: Count = 0  # Live documents of the family.
    sites: Count = 0  # Sites that have carried a document of the family, by the public suffix list, at most 256.
    count_1h: Count = 0  # Documents that joined the family within the last hour.
    count_24h: Count = 0  # Documents that joined the family within the last day.
    count_7d: Count = 0  # Documents that joined the family within the last week.
    # Distinct senders of the mails that joined the family within the last hour, at most 256.
    distinct_senders_1h: Count = 0
    # Distinct recipients of the mails that joined the family within the last hour, at most 256.
    distinct_recipients_1h: Count = 0
    # What the documents of the family are labelled as, for NEARSTREAM_LABEL_DELAY_SECONDS at least.
    labels: Labels = Labels(spam=0, ham=0)
    # By what labels reach a mail. `equal`: it is equal before anything is masked, with its links and attachments.
    # `broad`: it is long, and many domains send such mails. `near`: nothing else. `link`, `attachment`: it has that of
    # a labelled mail, and other mails of its sender lack it. `established`: they do not reach it, because its sender's
    # domain has sent such mails for long. Else empty.
    witness: Witness = ""
    unlabelled: Count = 0  # Members without a label that are older than the labelled ones by half a day, at most 128.
    # `suspended`: the labels of the family match far more than before, and do not count until somebody confirms or
    # revokes the labels. `confirmed`: the labels count nevertheless. Else empty.
    label_state: LabelState = ""
    # A text that lies in the document, which is no copy of it, and of which at least NEARSTREAM_BULK_COUNT copies
    # arrived within the last day, or of which a passage of 60 words is labelled, or is in mails of eight domains of the
    # last day. Else null.
    contains: Contained | None = None
    # Earlier mails that have all attachments of a mail, whatever their texts. Null: there are no such mails.
    attachments: Attached | None = None
    # Of each collection that the document or the token names as `against`, the document that is most like it, if one is
    # related.
    references: tuple[KnownReference, ...] = ()
    first_seen: datetime | None = None  # When the first document of the family was observed.
    # When the last document joined the family. Of a single document: when it was observed.
    last_seen: datetime | None = None
    score: Share = 0.0  # tanh(e * count_1h / NEARSTREAM_BULK_COUNT), 0 if it is no copy.
    scheme: str  # Name of the scheme of the signatures.
    low_confidence: tuple[str, ...] = ()  # Why the numbers are weak, such as `below_min_length` or `near_threshold`.
    degraded: bool = False  # The index did not answer, or not in time.
    # Why the answer is degraded. `deadline`: it took 150 ms, or `NEARSTREAM_API_SECONDS`. `index_unavailable`: Redis
    # does not answer. `index_lost`: Redis holds no index, or it is being rebuilt. `index_refused`: Redis refuses the
    # user, or the index has another scheme or key.
    reason: CheckReason = ""
    learned: bool = False  # With `?learn=1`: Kafka has confirmed the document, so workers add it to the index.
    # Why the document is not learned, or empty if that was not asked for. `deadline`: Kafka did not confirm it in time,
    # so it may still be learned. `kafka_unavailable`: Kafka does not answer. `outbox_full`: too many records wait for
    # Kafka. `kafka_refused`: Kafka refuses the user or the record. `index_unavailable`: a server of one file
    # could not store it.
    learn_reason: LearnReason = ""


class BareAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """Whether a document is related to a known one, references included, and nothing else."""

    related: bool  # It is related to a document of the index.


class SkipAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """Whether a crawler need not fetch a page now. Every field is always there."""

    skip: bool  # The page need not be fetched now. False without a decision, and in doubt.
    lineage: str  # What names the page: the canonical form of its URL, or of the one that it redirects to.
    # `skip`: the content is known from another page. `keep`: it has not changed. `refresh`: it has changed, so fetch it
    # sooner. Null: there is no decision.
    action: Action | None = None
    # Why: `first` fetch, `copy`, `unchanged`, `changed`, or `error_page` (it has turned to a text of other pages of its
    # host).
    because: Because = ""
    until: datetime | None = None  # The page need not be fetched before this time.
    canonical: str | None = None  # URL of the page that has the content, or its id if it has no URL.
    url: str | None = None  # Where the page was fetched last. Null: it is not known.
    etag: str | None = None  # Its ETag at that fetch, for If-None-Match.
    last_modified: str | None = None  # Its Last-Modified, for If-Modified-Since.
    degraded: bool = False  # Redis did not answer, or not in time, so `skip` is false.
    # Why the answer is degraded. `deadline`: it took 150 ms, or `NEARSTREAM_API_SECONDS`. `index_unavailable`: Redis
    # does not answer. `index_refused`: Redis refuses the user, who needs GET and ZRANGEBYSCORE.
    reason: SkipReason = ""


SKIPS_MAX = 1_000  # pages in one question


class SkipRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Question about many pages at once."""

    urls: Annotated[tuple[Url, ...], Meta(min_length=1, max_length=SKIPS_MAX)]  # The pages, not percent-encoded again.
    collection: Name = DEFAULT_COLLECTION  # The tenant of the pages.


class SkipAnswers(msgspec.Struct, frozen=True, kw_only=True):
    """What a crawler need not fetch now, or what it should fetch."""

    pages: tuple[SkipAnswer, ...]  # One for each URL in their order, or the pages that are due, error pages first.
    degraded: bool = False  # Redis did not answer, or not in time.
    reason: SkipReason = ""  # Why, as in each answer about a page.


class LabelRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Request of a label for a document, by its id or with its signature."""

    label: Kind
    id: Id | None = None  # The id of the document.
    # The document itself, as `nearstream sign` prints it, in place of an id. It is learned too.
    signature: Signature | None = None
    collection: Name = DEFAULT_COLLECTION  # The tenant of the id.
    weight: Weight = 1
    expected: bool = False  # The document need not be in the index yet. Without this an unknown id is refused.


class Labelled(msgspec.Struct, frozen=True, kw_only=True):
    """That a document is being labelled, or loses its label."""

    accepted: bool  # Always true: Kafka has confirmed the label, and workers carry it into the index.


class Removal(msgspec.Struct, frozen=True, kw_only=True):
    """That a document is being removed."""

    removed: bool  # Always true: Kafka has confirmed the removal, and workers carry it out in its turn.


class ApiError(msgspec.Struct, frozen=True, kw_only=True):
    """Why a request was refused."""

    error: str  # What is wrong, as a word for programs.
    detail: str  # What was expected. It never quotes the request.


class UnknownDocument(msgspec.Struct, frozen=True, kw_only=True):
    """Why a label was refused: the index does not have the document."""

    error: str  # `unknown_document`.
    detail: str  # What was expected.
    known: tuple[str, ...]  # The id as the index knows it: with the angle brackets of a Message-ID, or without them.


class Health(msgspec.Struct, frozen=True, kw_only=True):
    """Whether the process works."""

    healthy: bool  # Always true, because a process that hangs does not answer.


class Readiness(msgspec.Struct, frozen=True, kw_only=True):
    """Whether checks get whole answers."""

    ready: bool  # Redis answered within a second, and holds the index.
    why: str  # Why it is not ready, else empty.
    halted: tuple[str, ...]  # Each worker that stands still, and why. Checks are answered all the same, but learn less.
    workers: tuple[str, ...]  # How each worker does.


MEMBERS_MAX = 1_000  # in one answer


class FamilyLabel(msgspec.Struct, frozen=True, kw_only=True):
    """A label that a document of a family has."""

    id: str  # Id of the document.
    label: LabelKind  # What it is labelled as.
    weight: Annotated[int, Meta(ge=1, le=100)]  # How much it counts.
    since: datetime  # When it was given.


class FamilyMembers(msgspec.Struct, frozen=True, kw_only=True):
    """Some members of the family of a document. Every field is always there."""

    family: HexId  # Id of the family.
    size: Count  # Live documents of the family.
    first_seen: datetime  # When the first document of the family was observed.
    # Its stored documents, in the order of joining. There may be none in an answer with `next`.
    members: tuple[KnownDocument, ...]
    next: int | None  # Ask again with `after` set to this for further members. Null at the end.
    labels: tuple[FamilyLabel, ...]  # The labels of its documents, at most 64, the first one given first.
    # Whether they count. `suspended`: not, because too much matches. `confirmed`: all the same.
    label_state: Literal["", "suspended", "confirmed"]
    # Keyed hashes of the addresses that sent the mails that joined within the last hour.
    senders: tuple[AddressHash, ...]
    recipients: tuple[AddressHash, ...]  # Keyed hashes of the addresses that received these mails.
