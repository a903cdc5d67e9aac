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
Witness = Literal["", "equal", "broad", "near", "link", "attachment"]
CheckReason = Literal["", "deadline", "index_unavailable", "index_lost", "index_refused"]
SkipReason = Literal["", "deadline", "index_unavailable", "index_refused"]
CHECK_VERDICTS: tuple[str, ...] = get_args(CheckVerdict)

LearnReason = Literal["", "deadline", "kafka_unavailable", "outbox_full", "kafka_refused"]


class CheckMatch(msgspec.Struct, frozen=True, kw_only=True):
    """The earlier document that is most like the one that was asked about."""

    id: str  # Its id.
    version: str  # The first 8 bytes of its digest, in hex.
    observed_at: datetime  # When it was observed.


class Labels(msgspec.Struct, frozen=True, kw_only=True):
    """The labels of a family that are old enough to count."""

    spam: Annotated[Count, Meta(description="Sum of the weights of its documents labelled as spam.")]
    ham: Annotated[Count, Meta(description="Sum of the weights of its documents labelled as ham.")]


class Contained(msgspec.Struct, frozen=True, kw_only=True):
    """A text with many copies that lies in the document."""

    family: Annotated[HexId, Meta(description="Id of the family of its copies.")]
    count_1h: Annotated[Count, Meta(description="Documents that joined this family within the last hour.")]
    count_24h: Annotated[Count, Meta(description="Documents that joined this family within the last day.")]
    characters: Annotated[Count, Meta(description="How many characters of it the document has, estimated.")]
    labels: Annotated[Labels, Meta(description="The labels of this family that reach the document (see `witness`).")]


class CheckAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """What a document is to those that the index knows. Every field is always there.

    The descriptions of the fields are part of the published interface, so they are values here.
    """

    verdict: Annotated[
        CheckVerdict,
        Meta(
            description="`known_bad`: a copy, and spam has at least three times the weight of ham among the labels of "
            "its family that reach it. `near_bad`: so, but it only resembles labelled mail of few senders, or a form "
            "that many use. `known_good`: ham has. `disputed`: spam has, but ten times as many older members of the "
            "family have no label. `bulk`: another copy, of which at least NEARSTREAM_BULK_COUNT "
            "arrived within the last hour. `near_duplicate`: another copy, equal or nearly equal. `none`: no copy of "
            "anything known. `unknown`: there is no answer, because it is degraded or the text is too short."
        ),
    ]
    relation: Annotated[
        Relation | None,
        Meta(description="How the document relates to `match`. Null: to no known document."),
    ] = None
    resemblance: Annotated[Share | None, Meta(description="Common shingles over all shingles of both documents.")] = (
        None
    )
    low: Annotated[Share | None, Meta(description="Lower end of the 95 % interval of `resemblance`.")] = None
    high: Annotated[Share | None, Meta(description="Upper end of the 95 % interval of `resemblance`.")] = None
    distance: Annotated[
        Count | None, Meta(description="Estimated edit distance in characters. Null if the scheme has none.")
    ] = None
    added: Annotated[
        Amount | None, Meta(description="Estimated characters that `match` does not have. Null if there is none.")
    ] = None
    novel: Annotated[
        Amount | None,
        Meta(
            description="Estimated characters that none of the related documents has that the index found. Text counts "
            "as known from a run of eight common words on. Null if the scheme has no LD signatures."
        ),
    ] = None
    novel_spans: Annotated[
        tuple[Place, ...],
        Meta(
            description="Where these are, at most 16, the longest first, as `[start, end)` in characters of the text "
            "as it was sent, of a page or a mail in the text read from it, and of a signature in its normal form."
        ),
    ] = ()
    sources: Annotated[
        tuple[SourceRef, ...],
        Meta(description="The fewest documents that together have the rest, at most 5, the largest part first."),
    ] = ()
    common: Annotated[Count, Meta(description="Characters that are known only from text that many documents have.")] = 0
    redundant: Annotated[
        bool,
        Meta(description="`match` has all of it: both texts are equal and were read in full. Never true of new text."),
    ] = False
    match: Annotated[CheckMatch | None, Meta(description="The earlier document that is most like this one.")] = None
    family: Annotated[
        str | None, Meta(description="Id of the family of copies that the document would join. Null: it is no copy.")
    ] = None
    size: Annotated[Count, Meta(description="Live documents of the family.")] = 0
    sites: Annotated[
        Count,
        Meta(description="Sites that have carried a document of the family, by the public suffix list, at most 256."),
    ] = 0
    count_1h: Annotated[Count, Meta(description="Documents that joined the family within the last hour.")] = 0
    count_24h: Annotated[Count, Meta(description="Documents that joined the family within the last day.")] = 0
    count_7d: Annotated[Count, Meta(description="Documents that joined the family within the last week.")] = 0
    distinct_senders_1h: Annotated[
        Count,
        Meta(description="Distinct senders of the mails that joined the family within the last hour, at most 256."),
    ] = 0
    distinct_recipients_1h: Annotated[
        Count,
        Meta(description="Distinct recipients of the mails that joined the family within the last hour, at most 256."),
    ] = 0
    labels: Annotated[
        Labels,
        Meta(
            description="What the documents of the family are labelled as, for NEARSTREAM_LABEL_DELAY_SECONDS at least."
        ),
    ] = Labels(spam=0, ham=0)
    witness: Annotated[
        Witness,
        Meta(
            description="By what labels reach a mail. `equal`: it is equal before anything is masked, with its links "
            "and attachments. `broad`: it is long, and many domains send such mails. `near`: nothing else. `link`, "
            "`attachment`: it has that of a labelled mail, and other mails of its sender lack it. Else empty."
        ),
    ] = ""
    unlabelled: Annotated[
        Count,
        Meta(description="Members without a label that are older than the labelled ones by half a day, at most 128."),
    ] = 0
    label_state: Annotated[
        LabelState,
        Meta(
            description="`suspended`: far more matches the labels of the family than before, so they do not count "
            "until somebody confirms them or takes them back. `confirmed`: they count all the same. Else empty."
        ),
    ] = ""
    contains: Annotated[
        Contained | None,
        Meta(
            description="A text that lies in the document, which is no copy of it, and of which at least "
            "NEARSTREAM_BULK_COUNT copies arrived within the last day, or of which a passage of 40 words is labelled. "
            "Null: there is none."
        ),
    ] = None
    references: Annotated[
        tuple[ReferenceMatch, ...],
        Meta(
            description="Of each collection that the document or the token names as `against`, the document that is "
            "most like it, if one is related."
        ),
    ] = ()
    first_seen: Annotated[datetime | None, Meta(description="When the first document of the family was observed.")] = (
        None
    )
    last_seen: Annotated[
        datetime | None,
        Meta(description="When the last document joined the family. Of a single document: when it was observed."),
    ] = None
    score: Annotated[Share, Meta(description="tanh(e * count_1h / NEARSTREAM_BULK_COUNT), 0 if it is no copy.")] = 0.0
    scheme: Annotated[str, Meta(description="Name of the scheme of the signatures.")]
    low_confidence: Annotated[
        tuple[str, ...], Meta(description="Why the numbers are weak, such as `below_min_length` or `near_threshold`.")
    ] = ()
    degraded: Annotated[bool, Meta(description="The index did not answer, or not in time.")] = False
    reason: Annotated[
        CheckReason,
        Meta(
            description="Why the answer is degraded. `deadline`: it took 150 ms, or `NEARSTREAM_API_SECONDS`. "
            "`index_unavailable`: Redis does not "
            "answer. `index_lost`: Redis holds no index, or it is being rebuilt. `index_refused`: Redis refuses the "
            "user, or the index has another scheme or key."
        ),
    ] = ""
    learned: Annotated[
        bool, Meta(description="With `?learn=1`: Kafka has confirmed the document, so workers add it to the index.")
    ] = False
    learn_reason: Annotated[
        LearnReason,
        Meta(
            description="Why the document is not learned, or empty if that was not asked for. `deadline`: Kafka did "
            "not confirm it in time, so it may still be learned. `kafka_unavailable`: Kafka does not answer. "
            "`outbox_full`: too many records wait for Kafka. `kafka_refused`: Kafka refuses the user or the record."
        ),
    ] = ""


class BareAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """Whether a document is related to a known one, references included, and nothing else."""

    related: Annotated[bool, Meta(description="It is related to a document of the index.")]


class SkipAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """Whether a crawler need not fetch a page now. Every field is always there."""

    skip: Annotated[bool, Meta(description="The page need not be fetched now. False without a decision, and in doubt.")]
    lineage: Annotated[str, Meta(description="What names the page: the canonical form of its URL.")]
    action: Annotated[
        Action | None,
        Meta(
            description="`skip`: the content is known from another page. `keep`: it has not changed. `refresh`: it has "
            "changed, so fetch it sooner. Null: there is no decision."
        ),
    ] = None
    because: Annotated[
        Because,
        Meta(
            description="Why: `first` fetch, `copy`, `unchanged`, `changed`, `error_page` (its text has become that of "
            "other pages of its host), `canonical_changed` or `canonical_gone` (what it repeated is no longer there)."
        ),
    ] = ""
    until: Annotated[
        datetime | None, Meta(description="A page with `skip` or `keep` need not be fetched before this time.")
    ] = None
    canonical: Annotated[
        str | None, Meta(description="URL of the page that has the content, or its id if it has no URL.")
    ] = None
    url: Annotated[str | None, Meta(description="Where the page was fetched last. Null: it is not known.")] = None
    degraded: Annotated[bool, Meta(description="Redis did not answer, or not in time, so `skip` is false.")] = False
    reason: Annotated[
        SkipReason,
        Meta(
            description="Why the answer is degraded. `deadline`: it took 150 ms, or `NEARSTREAM_API_SECONDS`. "
            "`index_unavailable`: Redis does not "
            "answer. `index_refused`: Redis refuses the user, who needs GET, MGET and ZRANGEBYSCORE."
        ),
    ] = ""


SKIPS_MAX = 1_000  # pages in one question


class SkipRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Question about many pages at once."""

    urls: Annotated[
        tuple[Url, ...], Meta(min_length=1, max_length=SKIPS_MAX, description="The pages, not percent-encoded again.")
    ]
    collection: Annotated[Name, Meta(description="The tenant of the pages.")] = DEFAULT_COLLECTION


class SkipAnswers(msgspec.Struct, frozen=True, kw_only=True):
    """What a crawler need not fetch now, or what it should fetch."""

    pages: Annotated[
        tuple[SkipAnswer, ...],
        Meta(description="One for each URL in their order, or the pages that are due, error pages first."),
    ]
    degraded: Annotated[bool, Meta(description="Redis did not answer, or not in time.")] = False
    reason: Annotated[SkipReason, Meta(description="Why, as in each answer about a page.")] = ""


class LabelRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Request of a label for a document, by its id or with its signature."""

    label: Kind
    id: Annotated[Id | None, Meta(description="The id of the document.")] = None
    signature: Annotated[
        Signature | None,
        Meta(description="The document itself, as `nearstream sign` prints it, in place of an id. It is learned too."),
    ] = None
    collection: Annotated[Name, Meta(description="The tenant of the id.")] = DEFAULT_COLLECTION
    weight: Weight = 1
    expected: Annotated[
        bool, Meta(description="The document need not be in the index yet. Without this an unknown id is refused.")
    ] = False


class Labelled(msgspec.Struct, frozen=True, kw_only=True):
    """That a document is being labelled, or loses its label."""

    accepted: Annotated[
        bool, Meta(description="Always true: Kafka has confirmed the label, and workers carry it into the index.")
    ]


class Removal(msgspec.Struct, frozen=True, kw_only=True):
    """That a document is being removed."""

    removed: Annotated[
        bool, Meta(description="Always true: Kafka has confirmed the removal, and workers carry it out in its turn.")
    ]


class ApiError(msgspec.Struct, frozen=True, kw_only=True):
    """Why a request was refused."""

    error: str  # What is wrong, as a word for programs.
    detail: str  # What was expected. It never quotes the request.


class UnknownDocument(msgspec.Struct, frozen=True, kw_only=True):
    """Why a label was refused: the index does not have the document."""

    error: Annotated[str, Meta(description="`unknown_document`.")]
    detail: Annotated[str, Meta(description="What was expected.")]
    known: Annotated[
        tuple[str, ...],
        Meta(description="The id as the index knows it: with the angle brackets of a Message-ID, or without them."),
    ]


class Health(msgspec.Struct, frozen=True, kw_only=True):
    """Whether the process works."""

    healthy: Annotated[bool, Meta(description="Always true, because a process that hangs does not answer.")]


class Readiness(msgspec.Struct, frozen=True, kw_only=True):
    """Whether checks get whole answers."""

    ready: Annotated[bool, Meta(description="Redis answered within a second, and holds the index.")]
    why: Annotated[str, Meta(description="Why it is not ready, else empty.")]
    halted: Annotated[
        tuple[str, ...],
        Meta(description="Each worker that stands still, and why. Checks are answered all the same, but learn less."),
    ]
    workers: Annotated[tuple[str, ...], Meta(description="How each worker does.")]


MEMBERS_MAX = 1_000  # in one answer


class FamilyMember(msgspec.Struct, frozen=True, kw_only=True):
    """A document of a family, in its current state."""

    id: Annotated[str, Meta(description="Its id.")]
    version: Annotated[str, Meta(description="The first 8 bytes of its digest, in hex.")]
    observed_at: Annotated[datetime, Meta(description="When it was observed.")]


class FamilyLabel(msgspec.Struct, frozen=True, kw_only=True):
    """A label that a document of a family has."""

    id: Annotated[str, Meta(description="Id of the document.")]
    label: Annotated[LabelKind, Meta(description="What it is labelled as.")]
    weight: Annotated[int, Meta(ge=1, le=100, description="How much it counts.")]
    since: Annotated[datetime, Meta(description="When it was given.")]


class FamilyMembers(msgspec.Struct, frozen=True, kw_only=True):
    """Some members of the family of a document. Every field is always there."""

    family: Annotated[HexId, Meta(description="Id of the family.")]
    size: Annotated[Count, Meta(description="Live documents of the family.")]
    first_seen: Annotated[datetime, Meta(description="When the first document of the family was observed.")]
    members: Annotated[
        tuple[FamilyMember, ...],
        Meta(description="Its stored documents, in the order of joining. There may be none in an answer with `next`."),
    ]
    next: Annotated[
        int | None, Meta(description="Ask again with `after` set to this for further members. Null: there are none.")
    ]
    labels: Annotated[
        tuple[FamilyLabel, ...], Meta(description="The labels of its documents, at most 64, the first one given first.")
    ]
    label_state: Annotated[
        Literal["", "suspended", "confirmed"],
        Meta(description="Whether they count. `suspended`: not, because too much matches. `confirmed`: all the same."),
    ]
    senders: Annotated[
        tuple[AddressHash, ...],
        Meta(description="Keyed hashes of the addresses that sent the mails that joined within the last hour."),
    ]
    recipients: Annotated[
        tuple[AddressHash, ...], Meta(description="Keyed hashes of the addresses that received these mails.")
    ]
