"""The frame of a host: teasers, dates, counters, learned from the parts of its pages.

A part belongs to the frame of its host if it has come or gone on several pages, and nearly each time that one of them
was fetched again. That many pages have a part is not enough: so they have `Sold out`, or a line with a price, whose
change is news.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from struct import Struct
from typing import NamedTuple

import msgspec

from nearstream.streams.fingerprints.hashing import HashKey

PARTS_MAX = 512  # of a page; one with more is compared as a whole
ADDRESS = "@"  # with which the target of a link and the address of an image begin
_PACKED = Struct("<IIB")
_WORDS_MAX = 127
_MAIN = 128
# Ids of builds, visits and files, which say nothing of what a page shows.
_TOKEN = re.compile(r"\b(?=\w{0,512}\d)(?=\w{0,512}[a-f])[0-9a-f]{8,}\b")
_DIGITS = re.compile(r"\d+")
FORMS_MAX = 1_024  # of a host, about 16 bytes each
_PAGES_MIN = 4  # on which a part of the frame has come or gone
_CHANGED_TO_STAYED = 2  # changes for each time that it stayed
_COUNT_MAX = 200  # both counts are halved above it, so that a frame may change
_LEARNED_MAX = 128  # changed parts of a page, which was rewritten if it has more


class Part(NamedTuple):
    """A part of a page, such as a paragraph, a heading or a line of a list."""

    exact: int  # hash of its text
    form: int  # hash of its text with each number replaced by 0, so that a counter or a date keeps its form
    words: int  # how many words it has, at most 127, and 0 of an address
    is_main: bool = False  # it is in the main content


def pack_parts(parts: Sequence[tuple[str, bool]], key: HashKey) -> bytes:
    """Return hashes of parts, 9 bytes each, or nothing if a page has too many.

    Each part comes with whether it is in the main content. Addresses are left out first.
    """
    if len(parts) > PARTS_MAX:
        parts = [part for part in parts if not part[0].startswith(ADDRESS)]
    if len(parts) > PARTS_MAX:
        return b""
    return b"".join(_packed(masked(text), key, is_main=is_main) for text, is_main in parts)


def _packed(text: str, key: HashKey, *, is_main: bool) -> bytes:
    words = 0 if text.startswith(ADDRESS) else max(1, min(len(text.split()), _WORDS_MAX))
    return _PACKED.pack(_hash(text, key), _hash(_DIGITS.sub("0", text), key), words + _MAIN * is_main)


def masked(text: str) -> str:
    """Return a part in lower case, with `*` in place of each hexadecimal token."""
    return _TOKEN.sub("*", text.lower())


def unpack_parts(packed: bytes) -> list[Part]:
    """Return the parts of a page. Bytes that are no parts give none."""
    if len(packed) % _PACKED.size or len(packed) > PARTS_MAX * _PACKED.size:
        return []
    return [Part(exact, form, last % _MAIN, last >= _MAIN) for exact, form, last in _PACKED.iter_unpack(packed)]


def _hash(text: str, key: HashKey) -> int:
    return int.from_bytes(key.digest(text.encode("utf-8", "surrogatepass"))[:4], "little")


class Seen(msgspec.Struct, frozen=True, array_like=True):
    """What fetches have shown of the parts of one form."""

    # How often a page had such a part, and not the equal one at the next fetch, or the other way round.
    changed: int = 0
    stayed: int = 0  # how often a page had it, and again at the next fetch, since it first changed
    pages: tuple[int, ...] = ()  # numbers of the first pages on which it changed, at most 4


Frame = dict[int, Seen]


def learn(frame: Frame, page: int, older: Sequence[Part], newer: Sequence[Part]) -> Frame:
    """Return what is known of a host after two successive fetches of one of its pages.

    The frame has what was known before, by form, the longest unchanged first.
    """
    changed, stayed = _compare(older, newer)
    if len(changed) > _LEARNED_MAX:
        changed = set()
    learned = dict(frame)
    for form in sorted(changed):
        seen = learned.pop(form, Seen())
        is_new = len(seen.pages) < _PAGES_MIN and page not in seen.pages
        learned[form] = _bounded(Seen(seen.changed + 1, seen.stayed, (*seen.pages, page) if is_new else seen.pages))
    for form in sorted(stayed & learned.keys()):
        seen = learned[form]
        learned[form] = _bounded(Seen(seen.changed, seen.stayed + 1, seen.pages))
    return _without_oldest(learned)


def is_of_frame(frame: Frame, part: Part) -> bool:
    """Return whether a part belongs to the frame of its host."""
    seen = frame.get(part.form)
    return (
        seen is not None and len(seen.pages) == _PAGES_MIN and seen.changed >= _CHANGED_TO_STAYED * max(seen.stayed, 1)
    )


def has_stayed(frame: Frame, older: Sequence[Part], newer: Sequence[Part]) -> bool:
    """Return whether nothing but the frame of a page has changed.

    All other parts must be equal, in equal order, and have at least half of the words of either fetch. So a page of
    links is never judged by what little of it stays.
    """
    lasting_older, lasting_newer = ([part for part in page if not is_of_frame(frame, part)] for page in (older, newer))
    return lasting_older == lasting_newer and 2 * _words(lasting_newer) >= max(_words(older), _words(newer), 1)


def _words(parts: Iterable[Part]) -> int:
    return sum(part.words for part in parts)


def _compare(older: Sequence[Part], newer: Sequence[Part]) -> tuple[set[int], set[int]]:
    """Return the forms of changed parts, and the forms of unchanged parts."""
    before, after = Counter(older), Counter(newer)
    changed = {part.form for part in (before - after) | (after - before)}
    return changed, {part.form for part in before & after} - changed


def _bounded(seen: Seen) -> Seen:
    if max(seen.changed, seen.stayed) <= _COUNT_MAX:
        return seen
    return Seen(seen.changed // 2, seen.stayed // 2, seen.pages)


def _without_oldest(frame: Frame) -> Frame:
    """Drop forms above `FORMS_MAX`: first the oldest that changed on few pages."""
    excess = len(frame) - FORMS_MAX
    if excess <= 0:
        return frame
    by_pages = sorted(frame, key=lambda form: len(frame[form].pages) == _PAGES_MIN)
    left_out = set(by_pages[:excess])
    return {form: seen for form, seen in frame.items() if form not in left_out}
