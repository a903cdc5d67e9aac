"""Families at the home of their founders: joining, leaving and labels, packed and unpacked."""

from collections.abc import Sequence
from struct import Struct
from typing import Any

from nearstream.schemas.documents.document import ADDRESS_BYTES
from nearstream.streams.store.families import Growth
from nearstream.streams.store.messages import LINK_BYTES, Cover, FamilyView, Join, Leave, Mark, Measure
from nearstream.streams.store.registration import NUMBER_BYTES
from nearstream.workers.redis.server.layout import (
    FAMILY_FORMAT,
    JOIN_FORMAT,
    JOINS_DEAD,
    JOINS_FULL,
    JOINS_KEEPING,
    LEFT_FIRST,
    MARK_FORMAT,
    RECIPIENTS,
    SENDERS,
    TIME_SHIFT,
    KeyKind,
    StoreLayout,
    python_struct,
)

_FAMILY, _JOIN, _MARK = map(python_struct, (FAMILY_FORMAT, JOIN_FORMAT, MARK_FORMAT))
_JOINS = Struct(">II")  # slot of time, count
_JOINED = Struct(">IH?")  # ordinal, count of sites, whether the record of the founder is kept
_Packed = tuple[list[bytes], list[bytes]]
_Grown = list[Any]  # as `growth` packs it: a reply of the server is a list, of which no type says which item is what


def unpack_family(
    layout: StoreLayout, packed: bytes, score: bytes | None, now_ms: int, sites: int = 0
) -> FamilyView | None:
    """Return what a founder's home says about its family, unless this has expired.

    `score` is that of the asker among its members, and `sites` those of all who had joined when the asker did.
    """
    if 0 < layout.retention_ms * 3 // 2 < now_ms - _int(_FAMILY.unpack_from(packed)[4]):
        return None
    return _view(packed, 0 if score is None or float(score) == LEFT_FIRST else abs(int(float(score))), sites)


def _view(packed: bytes, ordinal: int, sites: int) -> FamilyView:
    identity, first_seen, representative, is_bare, _, _ = _FAMILY.unpack_from(packed)
    has_id = any(identity)
    first_seen_ms = _int(first_seen) - TIME_SHIFT if has_id else 0
    return FamilyView(_int(representative), bool(is_bare), ordinal, identity if has_id else b"", first_seen_ms, sites)


def pack_joins(layout: StoreLayout, tag: bytes, batch: Sequence[Join]) -> _Packed:
    """Return the keys of families, and for each join what it says about the member."""
    keys, items = set[bytes](), []
    for join in batch:
        keys |= _family_keys(layout, tag, join.founder)
        if join.sender or join.recipients:
            addresses = tag + KeyKind.ADDRESSES + _bytes(join.founder)
            keys |= {addresses + SENDERS.encode(), addresses + RECIPIENTS.encode()}
        if join.keeps:
            keys |= {tag + KeyKind.KEPT + _bytes(join.founder), tag + KeyKind.RECORDS + layout.group(join.founder)}
        head = _JOIN.pack(
            _bytes(join.founder),
            _bytes(join.number),
            JOINS_DEAD * join.is_dead | JOINS_FULL * join.is_full | JOINS_KEEPING * join.keeps,
            _bytes(join.instead),
            join.family_id,
            (join.first_seen_ms + TIME_SHIFT).to_bytes(6, "big"),
            _bytes(join.now_ms, 6),
            join.site,
            join.first_site,
            join.ordinal,
            join.ordinals,
            len(join.links) // LINK_BYTES,
            len(join.sender) // ADDRESS_BYTES,
        )
        items.append(head + join.links + join.sender + join.recipients)
    return list(keys), items


def unpack_joined(_layout: StoreLayout, _join: Join, _now_ms: int, answer: bytes) -> FamilyView:
    """Return the answer to a join."""
    ordinal, sites, is_kept = _JOINED.unpack_from(answer, _FAMILY.size)
    new_links = tuple(map(bool, answer[_FAMILY.size + _JOINED.size :]))
    return _view(answer, ordinal, sites)._replace(new_links=new_links, is_kept=is_kept)


def pack_leaves(layout: StoreLayout, tag: bytes, batch: Sequence[Leave]) -> _Packed:
    """Return the keys of families, and for each who leaves the founder and its number."""
    keys = {key for leave in batch for key in _family_keys(layout, tag, leave.founder)}
    return list(keys), [_bytes(leave.founder) + _bytes(leave.number) for leave in batch]


def pack_marks(layout: StoreLayout, tag: bytes, batch: Sequence[Mark]) -> _Packed:
    """Return the keys of labelled documents, and for each the family and the label."""
    keys, items = set[bytes](), []
    for founder, document, number, label in batch:
        keys |= _family_keys(layout, tag, founder)
        items.append(_MARK.pack(_bytes(founder), document) + (_bytes(number) + label if label else b""))
    return list(keys), items


def pack_measures(layout: StoreLayout, tag: bytes, batch: Sequence[Measure]) -> _Packed:
    """Return the keys of families, and for each measure its founder and time."""
    keys, items = set[bytes](), []
    for founder, now_ms in batch:
        own = _bytes(founder)
        keys |= _family_keys(layout, tag, founder)
        keys |= {tag + KeyKind.ADDRESSES + own + end.encode() for end in (SENDERS, RECIPIENTS)}
        items.append(own + _bytes(now_ms, 6))
    return list(keys), items


def unpack_growth(layout: StoreLayout, measure: Measure, now_ms: int, answer: _Grown) -> Growth | None:
    """Return how a family grows, unless it has expired."""
    packed, living, senders, recipients, marks, asked_ms, sites = answer
    family = unpack_family(layout, packed, None, now_ms) if packed else None
    if packed is None or family is None:
        return None
    last_ms = _int(_FAMILY.unpack_from(packed)[4])
    labelled = tuple(
        (document, _int(label[:NUMBER_BYTES]), label[NUMBER_BYTES:])
        for document, label in zip(marks[::2], marks[1::2], strict=True)
    )
    return Growth(
        family.family_id,
        measure.founder,
        family.representative,
        living,
        family.first_seen_ms,
        last_ms,
        int(asked_ms),
        tuple(_JOINS.iter_unpack(packed[_FAMILY.size :])),
        senders,
        recipients,
        labelled,
        sites,
    )


def pack_founders(_layout: StoreLayout, tag: bytes, batch: Sequence[int]) -> _Packed:
    """Return the keys of records that are kept, and the number of each founder."""
    own = list(map(_bytes, batch))
    return [tag + KeyKind.KEPT + one for one in own], own


def pack_covers(_layout: StoreLayout, _tag: bytes, batch: Sequence[Cover]) -> _Packed:
    """Return for each cover its partition, offset and time."""
    return [], [_bytes(each.partition, 2) + _bytes(each.offset + 1, 6) + _bytes(each.now_ms, 6) for each in batch]


def _family_keys(layout: StoreLayout, tag: bytes, founder: int) -> set[bytes]:
    own = _bytes(founder)
    return {tag + KeyKind.STATES + layout.group(founder), tag + KeyKind.MEMBERS + own, tag + KeyKind.LABELLED + own}


def _int(packed: bytes) -> int:
    return int.from_bytes(packed, "big")


def _bytes(number: int, size: int = NUMBER_BYTES) -> bytes:
    return number.to_bytes(size, "big")
