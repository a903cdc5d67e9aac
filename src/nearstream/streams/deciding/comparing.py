"""What differs between two fetches of a page, part by part."""

import struct
from array import array
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from nearstream.streams.estimates.frames import PARTS_MAX, Part

_WORDS_MAX, _IS_MAIN, _HAS_FORM = 63, 64, 128
_SENT = np.dtype([("exact", "<u4"), ("form", "<u4"), ("last", "u1")])  # `_PACKED` of frames.py
_MARK_PARTS = 16
_MOST = 0.5
LONG = 5  # words of a part of the main content that may be frame
Parts = Sequence[Part]


class Change(NamedTuple):
    """The parts of a page that only one of two fetches has."""

    came: list[Part]
    went: list[Part]  # but links


def shortened(sent: bytes) -> bytes:
    """Return the parts of a page, as they are kept.

    The main content, in its order, and sentences with numbers take 4 or 7 bytes a part. Of the rest the last 2 bytes of
    each hash are kept once, those of addresses last. Bytes that are no parts give none.
    """
    is_valid = len(sent) <= PARTS_MAX * _SENT.itemsize and not len(sent) % _SENT.itemsize
    parts = np.frombuffer(sent if is_valid else b"", _SENT)
    words, is_main = parts["last"] & 127, parts["last"] > 127
    has_number = parts["exact"] != parts["form"]
    is_whole = is_main | (has_number & (words > 0))
    flags = np.minimum(words, _WORDS_MAX) | is_main * np.uint8(_IS_MAIN) | has_number * np.uint8(_HAS_FORM)
    texts, addresses = (np.unique(parts["exact"][~is_whole & of].astype("<u2")) for of in (words > 0, words == 0))
    whole = parts[is_whole]
    hashes = np.append(whole["exact"], whole["form"][has_number[is_whole]])
    counts = struct.pack("<HHH", len(whole), len(texts), len(addresses))
    kept = counts + flags[is_whole].astype(np.uint8).tobytes() + _three(hashes)
    return kept + _sparse(texts) + _sparse(addresses) if len(parts) else b""


def _three(hashes: NDArray[np.uint32]) -> bytes:
    return hashes.astype("<u4").view(np.uint8).reshape(-1, 4)[:, :3].tobytes()


def _sparse(ends: NDArray[np.uint16]) -> bytes:
    """Pack sorted numbers by the code of Elias and Fano.

    These are the lower bytes, then a 0 for each step of the upper byte and a 1 for each number.
    """
    steps = np.zeros(len(ends) + 256, np.uint8)
    steps[(ends >> 8) + np.arange(len(ends))] = 1
    return (ends & 255).astype(np.uint8).tobytes() + np.packbits(steps).tobytes() if len(ends) else b""


def _dense(kept: bytes, start: int, count: int) -> list[int]:
    steps = np.unpackbits(np.frombuffer(kept, np.uint8, -1, start + count), count=count + 256)
    return [256 * (place - n) + kept[start + n] for n, place in enumerate(np.flatnonzero(steps).tolist())]


def lengthened(kept: bytes) -> list[Part]:
    """Return the parts that are kept of a page.

    A part of which only 2 bytes of a hash are kept has three words, an address none.
    """
    if not kept:
        return []
    whole, *counts = struct.unpack_from("<HHH", kept)
    flags = kept[6 : 6 + whole]
    start = 6 + 4 * whole + 3 * sum(flag >= _HAS_FORM for flag in flags)
    packed = np.zeros(((start - 6 - whole) // 3, 4), np.uint8)
    packed[:, :3] = np.frombuffer(kept[6 + whole : start], np.uint8).reshape(-1, 3)
    hashes = packed.view("<u4").ravel().tolist()
    forms = iter(hashes[whole:])
    parts = [
        Part(exact, next(forms) if flag & _HAS_FORM else exact, flag & _WORDS_MAX, bool(flag & _IS_MAIN))
        for flag, exact in zip(flags, hashes, strict=False)
    ]
    for words, count in zip((3, 0), counts, strict=True):
        if count:
            parts += [Part(each, each, words, False) for each in _dense(kept, start, count)]
            start += count + (count + 263) // 8
    return parts


def compare(older: Parts, newer: Parts) -> Change:
    """Return what came and what went. Of main content in another order, the first part that moved came."""
    before, now = (Counter(part.exact for part in page) for page in (older, newer))
    came, went = now - before, before - now
    change = Change(
        list({part.exact: part for part in newer if part.exact in came}.values()),
        list({part.exact: part for part in older if part.exact in went and part.words}.values()),
    )
    if not came and not went:
        pairs = zip(_main(older), _main(newer), strict=False)
        return Change([one for other, one in pairs if one.exact != other.exact][:1], [])
    return change


def _main(parts: Parts) -> list[Part]:
    """Return the parts of the main content, all if none is."""
    return [part for part in parts if part.is_main] or list(parts)


def words(parts: Iterable[Part]) -> int:
    """Return how many words parts have."""
    return sum(part.words for part in parts)


def share(change: Change, older: Parts, newer: Parts) -> float:
    """Return the share of words in parts that came or went."""
    return round(min(max(map(words, change)) / max(words(older), words(newer), 1), 1.0), 4)


def content_of(parts: Parts) -> int:
    """Return a hash of the main content."""
    return crc32(array("I", sorted({part.exact for part in _main(parts)})).tobytes())


def main_words(parts: Parts) -> int:
    """Return how many words the main content has."""
    return words(_main(parts))


def fresh(older: Parts, newer: Parts) -> list[Part]:
    """Return the parts of the main content that were not there before, also with other numbers."""
    known = {part.form for part in older}
    return [part for part in _main(newer) if part.form not in known]


def has_turned(older: Parts, newer: Parts) -> bool:
    """Return whether most words of the main content were replaced.

    A number in place of another one replaces nothing. What came has most words of the page now, or less than half as
    many as went: a wall may leave the first paragraph.
    """
    went, came = words(fresh(newer, older)), words(fresh(older, newer))
    return 2 * went > words(_main(older)) and came > 0 and (2 * came > words(_main(newer)) or 2 * came < went)


def mark_of(came: Parts) -> bytes:
    """Return the forms of the largest parts that a page has turned to."""
    largest = sorted(came, key=lambda part: -part.words)
    return array("I", {part.form: None for part in largest[:_MARK_PARTS]}).tobytes()


def shows(came: Parts, mark: bytes) -> bool:
    """Return whether most words that came are those of an error text."""
    forms = set(array("I", mark))
    return words(part for part in came if part.form in forms) > _MOST * words(came)
