"""The document: one text, as a producer sends it."""

import re
from datetime import UTC, datetime, timedelta
from typing import Annotated

import msgspec

# The look-ahead refuses a final newline, before which `$` alone matches too.
NAME_PATTERN = r"^[a-z0-9][a-z0-9-]{0,62}(?!\n)$"
LABEL_NAME_PATTERN = r"^[a-z0-9][a-z0-9-]{0,30}(?!\n)$"
ADDRESS_HASH_PATTERN = r"^[0-9a-f]{16}(?!\n)$"
ADDRESS_BYTES = 8  # of the keyed hash of an address
RECIPIENTS_MAX = 64
REFERENCES_MAX = 4
ID_PATTERN = r"^[^\u0000-\u001f\u007f-\u009f]{1,512}(?!\n)$"
LINEAGE_PATTERN = r"^[^\u0000-\u001f\u007f-\u009f]+(?!\n)$"
DEFAULT_COLLECTION = "default"
MAIL_SOURCE = "mail"
ATTACHMENTS_LABEL = "attachments"  # of a mail: a keyed digest of all in it that is no text
ATTACHMENTS_UNREAD = "unread"  # in place of the digest, if there was not enough time for it
SENDER_DOMAIN_LABEL = "sender-domain"  # of a mail: a keyed hash of the domain that it was sent from
UNPROVEN = "-unproven"  # ends such a label if the receiving server has not authenticated the domain
LINKS_LABEL = "links"  # of a mail: keyed hashes of the sites that its links lead to
LINKS_UNREAD = "unread"  # in place of the hashes, if tags were only stripped
LINKS_MAX = 8
SURROUNDINGS_LABEL = "surroundings"  # of a web page: a keyed digest of all its text, if its main content is only a part
LABELS_MAX = 8
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
YEAR_9999_MS = 253_402_300_799_999
CLOCKS_MS = 1000  # by which the clocks of those who send a document and its removal may differ
LATEST = datetime(9999, 12, 31, 23, 59, 59, 999_000, tzinfo=UTC)
COUNT_MAX = 2**53 - 1  # the largest integer that every reader of JSON keeps
# The index stores offsets and times in 6 bytes, times with 2**46 added (the year 8659), and partitions + 1 in 2.
OFFSET_MAX, PARTITION_MAX, OBSERVED_MAX_MS = 2**48 - 1, 2**16 - 2, 2**48 - 2**46 - 1
_MILLISECOND = timedelta(milliseconds=1)
_USER = re.compile(r"\A(https?:[/\\]{0,9}|(?:[^/\\?#]{0,64}:)?[/\\]{2})[^/\\?#]*@", re.IGNORECASE)

Id = Annotated[str, msgspec.Meta(pattern=ID_PATTERN)]
Name = Annotated[str, msgspec.Meta(pattern=NAME_PATTERN)]
LabelName = Annotated[str, msgspec.Meta(pattern=LABEL_NAME_PATTERN)]
CONTENT_TYPE_MAX_CHARACTERS = 128
LabelValue = Annotated[str, msgspec.Meta(max_length=128)]
Labels = Annotated[dict[LabelName, LabelValue], msgspec.Meta(max_length=LABELS_MAX)]
References = Annotated[tuple[Name, ...], msgspec.Meta(max_length=REFERENCES_MAX)]
AddressHash = Annotated[str, msgspec.Meta(pattern=ADDRESS_HASH_PATTERN)]
Lineage = Annotated[str, msgspec.Meta(pattern=LINEAGE_PATTERN)]
Time = Annotated[datetime, msgspec.Meta(tz=True)]
Url = Annotated[str, msgspec.Meta(max_length=4096)]
Count = Annotated[int, msgspec.Meta(ge=0, le=COUNT_MAX)]
Partition = Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)]
Offset = Annotated[int, msgspec.Meta(ge=0, le=OFFSET_MAX)]
TopicName = Annotated[str, msgspec.Meta(max_length=249)]
SchemeName = Annotated[str, msgspec.Meta(max_length=128)]
Word = Annotated[str, msgspec.Meta(max_length=64)]
Words = Annotated[tuple[Word, ...], msgspec.Meta(max_length=16)]
Share = Annotated[float, msgspec.Meta(ge=0, le=1)]


class Document(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One text as its producer observed it.

    Exactly one of `text`, `html` and `raw` holds the content. Other missing fields are filled in from the record that
    carried the document (`nearstream.streams.ingest.defaults`).
    """

    id: Id | None = None  # Unique in its collection. 1 to 512 characters without control characters.
    text: str | None = None  # The content as plain text.
    html: str | None = None  # The content as HTML.
    raw: bytes | None = None  # The content as bytes of type `content_type` (base64 in JSON).
    # Media type of `raw`, at most 128 characters.
    content_type: Annotated[str, msgspec.Meta(max_length=CONTENT_TYPE_MAX_CHARACTERS)] | None = None
    url: Url | None = None  # Where the text was observed, at most 4,096 characters.
    # What successive states of one thing share. The default is the canonical form of `url`.
    lineage: Lineage | None = None
    collection: Name = DEFAULT_COLLECTION  # The tenant. Documents of two collections are never compared.
    # When the text was observed, with time zone. The default is the record's timestamp.
    observed_at: Time | None = None
    source: Name | None = None  # The kind of producer, such as `crawler` or `mail`.
    labels: Labels = {}  # At most 8 names with values of at most 128 characters, which events repeat.
    sender_hash: AddressHash | None = None  # Keyed hash of the address that a mail was sent from, 16 hex digits.
    # Keyed hashes of at most 64 addresses that a mail was sent to.
    recipient_hashes: Annotated[tuple[AddressHash, ...], msgspec.Meta(max_length=RECIPIENTS_MAX)] = ()
    # At most 4 other collections that the document is compared with too. They learn nothing of it.
    against: References = ()

    def __post_init__(self) -> None:
        """Leave out the user and the password of a URL, which are kept nowhere."""
        for name in ("id", "url", "lineage"):
            value = getattr(self, name)
            if value and "@" in value:
                msgspec.structs.force_setattr(self, name, without_user(value))


def without_user(url: str) -> str:
    """Return a URL without its user and password, and any other text as it is."""
    user = _USER.match(url)
    return user[1] + url[user.end() :] if user else url


def document_key(collection: str, document_id: str) -> str:
    """Return the identity of a document across collections, `<collection>/<id>`.

    It is unambiguous, because the name of a collection contains no slash. An id that is a URL with a password names the
    document without them.
    """
    return f"{collection}/{without_user(document_id) if '@' in document_id else document_id}"


def require_times(*times: datetime | None) -> None:
    """Require times from 1970 to the end of 9999.

    A struct calls it when it is decoded, because msgspec has no bounds for times.
    """
    if not all(EPOCH <= time <= LATEST for time in times if time is not None):
        raise ValueError("Expected times from 1970 to 9999")


def to_milliseconds(time: datetime) -> int:
    """Return whole milliseconds since 1970, rounded down."""
    return (time - EPOCH) // _MILLISECOND


def from_milliseconds(milliseconds: int) -> datetime:
    """Return the time at this number of milliseconds since 1970, in UTC."""
    return EPOCH + milliseconds * _MILLISECOND
