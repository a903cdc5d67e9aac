"""The stored layout of an index, with constants for Python and Lua.

Every key begins with the hash tag T = `{namespace:hash of the scheme:shard}`, so all keys of a shard are in one slot.
A letter, the `KeyKind`, follows T. The table gives the kinds, their Redis types, the rest of their keys, and their
contents:

    m  FACTS          HASH    epoch, format, shards (their count), chunks_* (count of chunks by kind), state, lease
                              and lease_until (of a rebuild), rebuilt (last number given by a rebuild), seq (last number
                              reserved), done (last number given), floor, mark (time of the newest mark), aborted (last
                              number reserved by a call that failed halfway), removed (time of the newest entry of
                              REMOVED), labels (1, once there was a label), addresses (1, once there was a sender or
                              recipient), `o` + partition: checkpoint, which is the last offset admitted
    x  DIGEST         HASH    + chunk (4 bytes). Each field is a bucket: the second half of a key of a signature → the
    l  LINEAGE                numbers of the states that have this key. A field of 7 digits, and a number that is alone
    b  BAND                   in its bucket, are written in digits: the server stores these in fewer bytes and compares
    a  ANCHOR                 them faster than strings. Several numbers are packed.
    w  SPILL          STRING  + chunk, field of an anchor bucket: its newest numbers, once it has 12 heads
    i  REGISTRY       HASH    + chunk: hash of a document key → number of its current state
    r  RECORDS        HASH    + number div 16. With n = number mod 16: field n is the record of a state, field 32 + n
                              its member: `MEMBER_FORMAT`, then pairs of `PAIR_SIZE` bytes (the code of a relation, plus
                              `SENT` if its event was sent, and a candidate). An ordinal of 0 is a presumption. Field
                              48 + n is the count of records that need its text, field 16 + n this text, once its
                              record is gone
    f  FAMILIES       HASH    + number of the founder div 16. Field number mod 16: the facts of a family with a second
                              member: `FAMILY_FORMAT`, then `SMALL_FORMAT` or `LARGE_FORMAT`, then the relations to
                              other families of which events were sent (6 bytes each), then counts of joins in
                              `SLOT_FORMAT`. None are stored if all joins are in the same slots as the last one
    j  MEMBERS        STRING  + number of the founder, if there are more than `FEW` ordinals: by ordinal, the numbers of
                              the members' current states, 0 for those that have left
    g  MARKS          LIST    `ms:number`: the marks, oldest first
    d  REMOVALS       HASH    + partition, offset div 256: answers to removals, for seven days
    u  REMOVED        HASH    + half-hour since 1970: hash of a document key → time, and partition, offset and timestamp
                              on `documents`, of its removal. For an hour it refuses documents that were sent
                              before their removal
    s  SPARED         ZSET    spared numbers, by the time of the mark before the event or copy that spared them
    k  SPARED_RECORD  HASH    + number: the fields that such a state has in RECORDS, if it was spared late in its life
    t  LABELS         STRING  + hash of a document key: the label of this document, as `LABEL_FORMAT` describes it. It
                              need not be stored. A label that was taken back stays for a week
    y  LABELLED       HASH    + number of a founder: hash of the key of a document that got a label in this family, or
                              joined it with one → as `LABELLED_FORMAT` describes it. It does not count if the state is
                              no longer the current one of its document
    e  ADDRESSES      ZSET    + number of a founder, `s` or `r`: keyed hashes of the senders, or recipients, of mails
                              that joined this family, by the time of the last one. For an hour
    h  OVERFLOWS      HASH    kind, chunk, field of a bucket → how often it overflowed. `*` counts for all buckets that
                              found no room in this hash
    ~  PROBE          any     written and deleted while an index is opened

A record has the fields of `RECORD_FORMAT`, then the lengths of the id and of the rest of the identity (2 bytes each),
then the number that superseded the state (5 bytes, only if the flag `SUPERSEDED` is added to the first length), then
the id and the rest of the identity as `record.py` packs them, then the part that depends on the text alone, which
`text_part.py` packs. A copy has instead of this part a patch, as `text_patch.py` describes it, and the number of the
state to whose part it belongs, and the flag `SHARED` is added to the first length. The patch of an exact copy is empty.
A number without a live record refers to nothing.

The words that the code uses for this:

    number   The entry id of a stored state of a document: 1, 2, 3, ... in order of admission. It is packed in 5 bytes.
    epoch    The generation of an index: 8 random bytes that change when the index is created or rebuilt. A worker with
             another epoch finds its index lost. The epoch also salts the hashes of document keys.
    mark     A time bucket of the retention: a time, and the first number given from that time on. There are 256 marks
             in a retention period, and expiry proceeds from mark to mark.
    floor    The low watermark of expiry: lower numbers have expired, unless they are spared.
    spared   Retained: an event late in its life, or a copy that joined its family, gave this number another retention
             period.
    member   What is stored about a state beside its record: the decision about its family and its events.
    kept     Stored: a kept signature is the reduced form in which a record holds it (`Scheme.kept`). In the facts of
             `nearstream stats`, `kept` counts the spared numbers.
    heads    The oldest entries of a bucket, which newer ones never displace.
    chunk    One hash that holds many buckets or registry entries, so that the server stores them tightly.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, IntEnum
from struct import Struct

from nearstream.streams.index.contract import (
    Status,
)

FORMAT = "7"  # changes with the layout, because a release reads no other format
EPOCH_BYTES = 8
CHECKPOINT_FIELD = "o"  # of FACTS, followed by the partition
NUMBER_BYTES = 5
CHUNK_BYTES = 4
FIELD_DIGITS = 7
GROUP = 16  # states in one hash of RECORDS
TEXT_FIELD, MEMBER_FIELD, FOLLOWERS_FIELD = 16, 32, 48  # fields of a state, this far behind its record
SENT = 0x80  # flag of a relation in a stored pair: its event was sent
FAMILY_ID_BYTES = 16
FEW = 16  # ordinals of a family whose members are stored among its facts
LOG_TRIMMED = 1_024  # members that have left are cut off from the beginning of MEMBERS if there are this many
ANSWER_OFFSETS = 256  # offsets in one hash of REMOVALS
NO_PARTITION = 0xFFFF  # of a state that no record of `signatures` made
SENDERS, RECIPIENTS = "s", "r"  # the ends of keys of ADDRESSES
MAX_KEYS = 1_024  # one call stops after the document with which its keys reach this


class KeyKind(bytes, Enum):
    """The letter after the hash tag of a key.

    The table at the top of this module describes each kind.
    """

    FACTS = b"m"
    DIGEST = b"x"
    LINEAGE = b"l"
    BAND = b"b"
    ANCHOR = b"a"
    SPILL = b"w"
    REGISTRY = b"i"
    RECORDS = b"r"
    MARKS = b"g"
    FAMILIES = b"f"
    MEMBERS = b"j"
    REMOVALS = b"d"
    REMOVED = b"u"
    SPARED = b"s"
    SPARED_RECORD = b"k"
    LABELS = b"t"
    LABELLED = b"y"
    ADDRESSES = b"e"
    OVERFLOWS = b"h"
    PROBE = b"~"

    @property
    def label(self) -> str:
        """The name of this kind in reports."""
        return self.name.lower()


BUCKET_KINDS = (KeyKind.DIGEST, KeyKind.LINEAGE, KeyKind.BAND, KeyKind.ANCHOR)
CHUNKED_KINDS = (*BUCKET_KINDS, KeyKind.REGISTRY)
LAYOUT_FIELDS = ("epoch", "format", "shards", *(f"chunks_{kind.decode()}" for kind in CHUNKED_KINDS))


@dataclass(frozen=True)
class IndexLayout:
    """How the keys of one shard are spread over the store.

    Attributes:
        epoch: The generation of the index.
        chunks: Count of chunks of each of `CHUNKED_KINDS`.
    """

    epoch: bytes
    chunks: Mapping[KeyKind, int]


class AdmissionFlag(IntEnum):
    """Flags of an admission on its way to the server."""

    IS_REMOVAL = 1
    HAS_POSITION = 2
    HAS_LINEAGE = 4
    POSITION_ONLY = 8  # moves the checkpoint, has no document
    HAS_ORIGIN = 16
    IS_LABEL = 32


class AnswerFlag(IntEnum):
    """Flags of an answer. `Admitted` describes them."""

    CUT = 1
    HAS_PREVIOUS = 2
    MAY_CHANGE = 4
    FOUND = 8
    REPEATED = 16
    DECIDED = 32  # a decision follows: the view of a family, then pairs


class CandidateFlag(IntEnum):
    """Flags of a candidate. `Candidate` describes them."""

    BY_DIGEST = 1
    BY_LINEAGE = 2
    IN_FULL_BUCKET = 4
    REPRESENTS = 8
    GONE = 16  # it was removed or has expired
    SHARES_RARE = 32


class LabelCode(IntEnum):
    """Kinds of labels."""

    LABEL_NONE = 0  # it was taken back
    LABEL_SPAM = 1
    LABEL_HAM = 2


class SettlementFlag(IntEnum):
    """Flags of a settlement. `Settlement` describes them."""

    EXACT = 1
    KEEPS = 2


class DegradedFlag(IntEnum):
    """What was incomplete about a decision."""

    FULL_BUCKETS = 1
    CANDIDATES_CUT = 2


class SettledLetter(bytes, Enum):
    """The first byte of the answer to a settlement. `Settled` describes what follows."""

    IS_SETTLED = b"s"
    FOLLOWS = b"f"
    IS_REFUSED = b"r"
    IS_GONE = b"x"


STATUS_LETTERS = {
    Status.NEW: b"n",
    Status.UPDATED: b"u",
    Status.UNCHANGED: b"c",
    Status.REPLAYED: b"r",
    Status.STALE: b"s",
    Status.REMOVED: b"d",
    Status.OVERTAKEN: b"o",
    Status.LABELLED: b"l",
}

# Formats in the notation of Lua's `struct` library, where numbers may have 5 or 6 bytes.
# Number of the previous state, partition, offset, observed at + 2^46 ms, version, count of bands, count of anchors,
# hash of the document key.
RECORD_FORMAT = ">I5I2I6I6c8BI2c9"
# Registry chunk, hash of the document key, flags, partition, offset, previous offset + 1, observed at + 2^46 ms,
# version, count of bands, count of anchors, partition, offset and timestamp on `documents`. Chunk and field of
# each key follow: digest, lineage, bands, anchors. The record from the length of the id on comes last.
ADMISSION_FORMAT = ">c4c9BI2I6I6I6c8BI2I2I6I6"
# Kind, weight, time when it was given, offset of its record. An admission of a label has 0 in place of the offset.
LABEL_FORMAT = ">BBI6I6"
LABELLED_FORMAT = ">I5BBI6"  # number of the state, kind, weight, time when it was given
REMOVED_FORMAT = ">I6I2I6I6"  # time, partition, offset and timestamp on `documents`
ANSWER_FORMAT = ">I2BI5"  # count of full buckets, flags, number of the presumed representative
CANDIDATE_FORMAT = ">I5BI2B"  # number, shared bands, shared anchors, flags
# Number of the founder (of a presumption: of the representative, or its own once it was denied), ordinal, degraded.
MEMBER_FORMAT = ">I5I4B"
# Id, observation of the founder + 2^46 ms, representative, whether that may be in few buckets, time of the last join,
# count of remembered relations, count of ordinals up to FEW.
FAMILY_FORMAT = ">c16I6I5BI6BB"
# Of a family with more ordinals: their count, those cut off from MEMBERS, those before the first living one, those that
# left.
LARGE_FORMAT = ">I4I4I4i4"
# Of any other: ordinals before the first living one, those that left. What would be in MEMBERS follows.
SMALL_FORMAT = ">Bb"
SLOT_FORMAT = ">BI4I4"  # index of the width in SLOTS_MS, time divided by the width, joins
# Number of the family, number of the founder that the decision names, ordinal, degraded, id (zeros: as the founder
# gives it), observation of the founder + 2^46 ms, whether the founder is stored.
VIEW_FORMAT = ">I5I5I4Bc16I6B"
# Number, number of the state that is joined, flags, degraded, id and observation of the founder, count of senders and
# of recipients, length of a patch. The hashes of both follow, then the patch, which turns the text of the joined state
# into that of this one, then pairs: code of the relation, when to send the event, candidate.
SETTLEMENT_FORMAT = ">I5I5BBc16I6BBI2"


def _python_struct(lua_format: str) -> Struct:
    """Return the struct of a Lua format.

    Numbers of 5 and 6 bytes, which Python lacks, are byte strings in it.
    """
    return Struct(re.sub("[Ic]([0-9]+)", r"\1s", lua_format.replace("I2", "H").replace("i4", "i")))


RECORD = _python_struct(RECORD_FORMAT)
ADMISSION = _python_struct(ADMISSION_FORMAT)
ANSWER = _python_struct(ANSWER_FORMAT)
CANDIDATE = _python_struct(CANDIDATE_FORMAT)
REMOVED = _python_struct(REMOVED_FORMAT)
LABEL = _python_struct(LABEL_FORMAT)
LABELLED = _python_struct(LABELLED_FORMAT)
MEMBER = _python_struct(MEMBER_FORMAT)
FAMILY = _python_struct(FAMILY_FORMAT)
LARGE = _python_struct(LARGE_FORMAT)
SMALL = _python_struct(SMALL_FORMAT)
SLOT = _python_struct(SLOT_FORMAT)
VIEW = _python_struct(VIEW_FORMAT)
SETTLEMENT = _python_struct(SETTLEMENT_FORMAT)
PAIR_SIZE = 1 + CANDIDATE.size
