"""The stored layout of an index, with constants for Python and Lua.

Every key begins with the hash tag T = `{namespace:hash of the scheme:slot}`, so all keys of a slot are on one server. A
point and a number follow all slots but 0, which `tag_of` has chosen so that slots are spread over a cluster.
A letter, the `KeyKind`, follows T. The table gives the kinds, their Redis types, the rest of their keys, and what they
hold:

    m  FACTS       HASH    layout (`LAYOUT_FORMAT`), rebuilder (lease of an unfinished rebuild), now (time of the newest
                           call that has one), over (some states are over), removed (there were removals), `o` +
                           partition: the offset up to which all its records are done, `f` + partition:
                           `MARK_OF_TIME_FORMAT` in order, to know which of its states are over
    c  LANE        STRING  + name of a lane, partition: how many of its writing calls the slot has acknowledged. For a
                           day after the last one
    x  DIGEST      HASH    + chunk (4 bytes). Each field is a bucket: 7 digits made from a key → the numbers that have
    l  LINEAGE             this key, packed. A number that is alone in its bucket is written in digits, because the
    b  BAND                server stores these in fewer bytes, as it does fields of digits
    a  ANCHOR
    i  REGISTRY    HASH    + chunk: hash of a document key → number of its current state, in digits. The hash + `t` →
                           number of the record that gave it a label, then when, 6 bytes, and the label, or nothing if
                           it was taken back. The hash + `u` → `REMOVAL_FORMAT`
    s  STATES      HASH    + group: row mod 16 → `STATE_FORMAT`, then the decision (flag `DECIDED`), or else the numbers
                           of those that go on without it. A state of another kind has something else there: one that
                           repeats another, its number, and a removal, those who left families and the founders of
                           these. For one and a half retentions, so it leads to its family when its record is gone.
                           16 + row mod 16 → `FAMILY_FORMAT` of the family that the state has founded, then slots of
                           time and counts of the joins in them, 4 bytes each
    r  RECORDS     HASH    + group: row mod 16 → the record of a state. For a retention
    j  MEMBERS     ZSET    + number of a founder: members by ordinal. Below 0: they have left. `LEFT_FIRST`: before they
                           joined. Links to other families by `LINK_SCORE` + the number of who had them first. Hashes
                           of sites by `SITE_SCORE` + the ordinal of the first member of each
    t  KEPT        HASH    + number of a founder: `r`, its record, of which those of copies are patches, `t`, when it
                           was last needed. For a retention after that
    e  ADDRESSES   ZSET    + number of a founder, `s` or `r`: keyed hashes of the senders, or recipients, of mails that
                           joined its family, by the time of the last one. For two hours
    y  LABELLED    HASH    + number of a founder: hash of the key of a labelled document → number of its state, then
                           when it got its label, and the label
    z  LEASE       STRING  of slot 0: who rebuilds the index, for as long as the lease is renewed
    p  PROBE       any     written and deleted at the start of a worker, to find out what our user may do
    ~  GATE        none    never written. While a slot moves to another server, a call that names a key which is missing
                           beside one that is there is refused as a whole, so no function stops halfway

The row of a number is its quotient by the count of partitions, which is offset + 1. The group is row div 16, times the
count of partitions, plus the partition. So states of records that follow each other are in one hash.

All keys of a call are declared. Those of former states of documents are known only to the server, so `register` answers
`UNDECLARED` for a document that has one, and is called again with its keys.
"""

import re
from binascii import crc_hqx
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum
from functools import cache
from itertools import count
from struct import Struct

from nearstream.streams.ingest.sites import SITE_BYTES
from nearstream.streams.store import messages
from nearstream.streams.store.buckets import BUCKET
from nearstream.streams.store.limits import IndexLimits
from nearstream.streams.store.registration import NUMBER_BYTES
from nearstream.streams.store.store import Shape

FORMAT = 9  # changes with the layout, because a release reads no other format
EPOCH_BYTES = LANE_BYTES = LEASE_BYTES = 8
NO_LEASE = bytes(LEASE_BYTES)
CHUNK_BYTES = 4
FIELD_BYTES = 7
FIRST_FIELD, FIELDS = 10**6, 2**23 - 10**6  # of buckets: numbers of 7 digits that the server stores in 3 bytes
GROUP = 16  # states in one hash
FIRST_KEY = 4  # of those of a call, behind the facts, the gate and the lane
ALONE_BELOW = 10**9  # a number that is alone in its bucket is written in digits if it is smaller
LANE_MS = 86_400_000
COVER_FIELD, FLOOR_FIELD = "o", "f"
MARKS = 32  # of time, in a retention
LABEL_FIELD, REMOVAL_FIELD = "t", "u"
SENDERS, RECIPIENTS = "s", "r"
TIME_SHIFT = 2**46  # added to times of documents, which may lie before 1970
LEFT_FIRST = -0.5
LINK_SCORE, SITE_SCORE = 2**50, 2**51

# Flags of a state, and of its kind.
LATE, SUPERSEDED, GONE, DECIDED, FOLLOWED = 1, 2, 4, 8, 16
WAS_KNOWN = 1  # of a removal
KINDS, REPEATS, REMOVAL, STUB = 64, 64, 128, 192
JOINS_DEAD, JOINS_FULL, JOINS_KEEPING = 1, 2, 4  # flags of a join
PUT_ITEM, REMOVAL_ITEM, LABEL_ITEM = 0, 1, 2
UNDECLARED = 255  # in place of a status: a former state follows, whose keys have to be declared


class KeyKind(bytes, Enum):
    """The letter after the hash tag of a key. The table above describes each kind."""

    FACTS = b"m"
    LANE = b"c"
    DIGEST = messages.DIGEST
    LINEAGE = messages.LINEAGE
    BAND = messages.BAND
    ANCHOR = messages.ANCHOR
    REGISTRY = b"i"
    STATES = b"s"
    RECORDS = b"r"
    MEMBERS = b"j"
    KEPT = b"t"
    ADDRESSES = b"e"
    LABELLED = b"y"
    LEASE = b"z"
    GATE = b"~"
    PROBE = b"p"


BUCKET_KINDS = (KeyKind.DIGEST, KeyKind.LINEAGE, KeyKind.BAND, KeyKind.ANCHOR)
CHUNKED_KINDS = (*BUCKET_KINDS, KeyKind.REGISTRY)

# Planned fields of a chunk. The server goes through a chunk twice to add a field, and a chunk costs some 60 bytes.
CHUNK_FIELDS = 48
USUAL_ANCHORS = 40  # of a document

# Formats in the notation of Lua's `struct` library, where numbers may have 5 or 6 bytes.
LAYOUT_FORMAT = ">c8BI2I2I4I4I4I4I4"  # epoch, `FORMAT`, slots, partitions, count of chunks of each of `CHUNKED_KINDS`
# Epoch, lease, calls of the lane that were acknowledged, partition that is written for, partitions, retention in ms,
# most entries of an anchor bucket.
HEADER_FORMAT = ">c8c8I4I2I2I6I2"
ENTRY_FORMAT = ">c5c5I2"  # number, hint, count of its buckets. The fields of all follow
BUCKET_FORMAT = BUCKET.format
ORDER_FORMAT = ">I6I2I6I4I4"  # observed + `TIME_SHIFT`, partition + 1, offset, version
ITEM_FORMAT = ">BI5I6c4c9"  # kind, number, time, chunk of the registry, hash of the document key
PUT_FORMAT = ">c22I6I2"  # `ORDER_FORMAT`, timestamp of its record, count of anchors. The signature follows
SENT_FORMAT = ">I2I6I6"  # of a record on `documents`: partition + 1, offset, timestamp
REMOVAL_FORMAT = ">I6c14"  # time, `SENT_FORMAT`
STATE_FORMAT = (
    ">BI2I6c22I5I5"  # flags, count of anchors, time of registration, `ORDER_FORMAT`, former and previous state
)
QUERY_FORMAT = ">I5I5B"  # number, asker, whether the record is wanted
PROPOSAL_FORMAT = ">I5I4"  # number, count of notes seen. The decision follows
# Id, observation of the founder + `TIME_SHIFT`, representative, whether it is bare, time of the last join, count of
# ordinals.
FAMILY_FORMAT = ">c16I6I5BI6I4"
# Founder, member, flags, whose place it takes, id, observation of the founder + `TIME_SHIFT`, time, hash of the site of
# the member, of the founder, ordinal, highest ordinal of the family, count of links, of senders.
JOIN_FORMAT = ">I5I5BI5c16I6I6c8c8I4I4BB"
MARK_OF_TIME_FORMAT = ">I6I6"  # time, row up to which all was done by then
MARK_FORMAT = ">I5c9"  # founder, hash of the document key


def python_struct(lua_format: str) -> Struct:
    """Return the struct of a Lua format.

    Numbers of 5 and 6 bytes, which Python lacks, are byte strings in it.
    """
    return Struct(re.sub("[Ic]([0-9]+)", r"\1s", lua_format.replace("I2", "H").replace("I4", "I")))


NO_NUMBER, NO_ID, NO_SITE = bytes(NUMBER_BYTES), bytes(messages.FAMILY_ID_BYTES), bytes(SITE_BYTES)
NO_STATE = bytes((STUB,)).ljust(python_struct(STATE_FORMAT).size, b"\0")
NO_MARK = bytes(python_struct(MARK_OF_TIME_FORMAT).size)

_LAYOUT = python_struct(LAYOUT_FORMAT)
_HASH_BITS, _HASH_SLOTS = 14, 16_384  # of a cluster
_NEAR = 64  # hash slots


@cache
def tag_of(prefix: bytes, slot: int) -> bytes:
    """Return the hash tag of a slot.

    The slots of an index lie at even distances among the hash slots of a cluster, where chance would put half of them
    on one of four servers. Each next slot halves a gap, so their count does not matter.
    """
    own = b"%s%d" % (prefix, slot)
    if slot == 0:
        return own + b"}"
    turned = int(f"{slot % _HASH_SLOTS:0{_HASH_BITS}b}"[::-1], 2)
    target = _hash_slot(b"%s0}" % prefix) + turned
    tags = (b"%s.%d}" % (own, number) for number in count())
    return next(tag for tag in tags if (_hash_slot(tag) - target) % _HASH_SLOTS < _NEAR)


def _hash_slot(tag: bytes) -> int:
    return crc_hqx(tag[1:-1], 0) % _HASH_SLOTS


@dataclass(frozen=True)
class StoreLayout:
    """How the keys of an index are spread over the store."""

    prefix: bytes  # what the hash tags of all its slots begin with
    epoch: bytes  # the generation of the index, 8 random bytes that change when it is created or rebuilt
    shape: Shape  # count of slots and partitions
    chunks: Mapping[KeyKind, int]  # count of chunks in one slot of each of `CHUNKED_KINDS`
    limits: IndexLimits  # bounds of the index

    def tag(self, slot: int) -> bytes:
        """Return the hash tag of a slot."""
        return tag_of(self.prefix, slot)

    def group(self, number: int) -> bytes:
        """Return the end of the keys of the hashes that a number is in."""
        row, partition = divmod(number, self.shape.partitions)
        return (row // GROUP * self.shape.partitions + partition).to_bytes(5, "big")

    def field(self, number: int) -> int:
        """Return the field of a number in these hashes."""
        return number // self.shape.partitions % GROUP

    def number(self, group: bytes, field: int) -> int:
        """Return the number with this field in the hashes whose keys end like this."""
        place, partition = divmod(int.from_bytes(group, "big"), self.shape.partitions)
        return (place * GROUP + field) * self.shape.partitions + partition

    def registry_chunk(self, document: bytes) -> bytes:
        """Return the end of the key of the registry that has a document, given its hash."""
        chunk = int.from_bytes(document[:CHUNK_BYTES], "big") % self.chunks[KeyKind.REGISTRY]
        return chunk.to_bytes(CHUNK_BYTES, "big")

    @property
    def packed(self) -> bytes:
        """What each slot keeps of it."""
        counts = [self.chunks[kind] for kind in CHUNKED_KINDS]
        return _LAYOUT.pack(self.epoch, FORMAT, self.shape.slots, self.shape.partitions, *counts)

    def as_stored(self, packed: bytes) -> "StoreLayout":
        """Return the layout that a slot keeps, which is of this release and of this shape."""
        epoch, _, _, _, *counts = _LAYOUT.unpack(packed)
        return replace(self, epoch=epoch, chunks=dict(zip(CHUNKED_KINDS, counts, strict=True)))

    @property
    def retention_ms(self) -> int:
        """How long a document can be found, 0 for ever."""
        return 1000 * self.limits.retention_seconds


def format_of(packed: bytes) -> int:
    """Return the format of an index from what a slot keeps of its layout."""
    return packed[EPOCH_BYTES]


def shape_of(packed: bytes) -> Shape:
    """Return the shape of an index of this format from what a slot keeps."""
    return Shape(*_LAYOUT.unpack(packed)[2:4])


def new_layout(prefix: bytes, shape: Shape, limits: IndexLimits, epoch: bytes) -> StoreLayout:
    """Return the layout of a new index."""
    usual = {KeyKind.BAND: limits.bands, KeyKind.ANCHOR: USUAL_ANCHORS}
    chunks = {
        kind: max(1, limits.documents * usual.get(kind, 1) // CHUNK_FIELDS // shape.slots) for kind in CHUNKED_KINDS
    }
    return StoreLayout(prefix, epoch, shape, chunks, limits)
