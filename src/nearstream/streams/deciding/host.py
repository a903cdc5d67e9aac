"""What is known of a host: its frame, and which of its numbers always change.

Teasers, tickers, dates and banners are the frame: they come and go on several pages at about the same time. A price
changes too, but on each page by itself.
"""

from array import array
from collections.abc import Sequence
from struct import Struct
from typing import NamedTuple

import numpy as np
from msgspec.structs import replace as with_fields

from nearstream.streams.deciding.comparing import LONG, Change, Parts, words
from nearstream.streams.deciding.states import HostState, Shown
from nearstream.streams.estimates.frames import Part

SHOWN_MAX = 30  # pages
_PARTS_MAX = 256  # of each of them
_PAGES_MIN = 3  # others that have shown a part of the frame
_WALL_PAGES, _MOST = 3, 0.8  # with one content, which may be a wall
_TITLE_WORDS = 20  # that may be a page's own beside a wall, which leaves no more than a title

_HOURS, _DAYS = 48, 14
_FRAME = np.dtype([("part", "<u4"), ("day", "<u4")])
_FRAME_MAX, _CAME_MAX = 512, 128
_NOISE = Struct("<IBB")
_NOISE_MAX, _COUNT_MAX = 128, 200
_COMPARED_MIN, _CHANGED_MIN = 6, 0.9


class Frame(NamedTuple):
    """What of a change belongs to the frame of a host."""

    parts: set[int]  # hashes of its parts
    host: HostState  # what is known of the host after the change


def frame_of(host: HostState, own: Shown, parts: Parts) -> set[int]:
    """Return the hashes of those parts that are frame.

    Three other pages have shown such a part within 48 hours, among the last 30 that were fetched. A cell, a status or a
    price of the main content is never frame.
    """
    return _known(host, parts) | _shared(host, own, parts, _HOURS)


def changed_frame(host: HostState, own: Shown, change: Change) -> Frame:
    """Find the frame in a change.

    Teasers come on several pages in place of others, and go again. What comes once on all pages is news on each.
    """
    known = _known(host, [*change.came, *change.went])
    came, went = _shared(host, own, change.came, _HOURS), _shared(host, own, change.went, 24 * _DAYS)
    if not came or not went:
        return Frame(known, _with_frame(host, known, own.hour))
    before = array("I", host.came)
    rotates = host.rotates or not went.isdisjoint(before)
    newest = array("I", [*(part for part in before if part not in came), *sorted(came)][-_CAME_MAX:])
    host = with_fields(host, rotates=rotates, came=newest.tobytes())
    frame = known | came | went if rotates else known
    return Frame(frame, _with_frame(host, frame, own.hour))


def _able(parts: Parts) -> list[int]:
    return [part.exact for part in parts if not part.is_main or part.words >= LONG or not part.words]


def _known(host: HostState, parts: Parts) -> set[int]:
    able = _able(parts)
    return set(np.frombuffer(host.frame, _FRAME)["part"].tolist()).intersection(able) if able else set()


def _shared(host: HostState, own: Shown, parts: Parts, hours: int) -> set[int]:
    others = [
        each.parts
        for each in host.shown
        if each.page != own.page and each.content != own.content and abs(each.hour - own.hour) <= hours
    ]
    return _within(others, _able(parts), _PAGES_MIN)


def _within(pages: Sequence[bytes], parts: Sequence[int], least: int) -> set[int]:
    """Return the parts that this number of pages has shown."""
    shown = np.frombuffer(b"".join(pages), "<u2") if parts else np.empty(0)
    return {part for part in parts if np.count_nonzero(shown == part & 0xFFFF) >= least}


def _with_frame(host: HostState, parts: set[int], hour: int) -> HostState:
    """Return what is known of a host after parts of its frame came or went.

    A part that did neither for two weeks is forgotten.
    """
    if not parts:
        return host
    day = hour // 24
    known = np.frombuffer(host.frame, _FRAME)
    lasting = known[~np.isin(known["part"], list(parts)) & (known["day"] + _DAYS >= day)]
    newest = np.array([(part, day) for part in sorted(parts)], _FRAME)
    return with_fields(host, frame=np.append(lasting, newest)[-_FRAME_MAX:].tobytes())


def with_page(host: HostState, own: Shown) -> HostState:
    """Return what is known of a host after a fetch of one of its pages."""
    others = [each for each in host.shown if each.page != own.page]
    return with_fields(host, shown=(*others, own)[-SHOWN_MAX:])


def shown_parts(parts: Parts) -> bytes:
    """Return 2 bytes of the hash of each part."""
    return array("H", sorted({part.exact & 0xFFFF for part in parts[:_PARTS_MAX]})).tobytes()


def is_wall(host: HostState, own: Shown, main: Parts) -> bool:
    """Return whether two other pages of a host, no variants, show a main content but for its title."""
    others = [each.parts for each in host.shown if each.is_proper and each.page != own.page]
    common = _within(others, [part.exact for part in main], _WALL_PAGES - 1)
    every, own_words = words(main), words(part for part in main if part.exact not in common)
    return own_words <= _TITLE_WORDS and every - own_words > _MOST * every


def with_noise(host: HostState, older: Parts, change: Change) -> HostState:
    """Return what is known of numbers beside the main content after a comparison."""
    changed = {part.form for part in (*change.came, *change.went) if _may_be_noise(part)}
    counts = {form: (compared, times) for form, compared, times in _NOISE.iter_unpack(host.noise)}
    touched = changed | {part.form for part in older if _may_be_noise(part)}
    if not touched:
        return host
    for form in sorted(touched):
        compared, times = counts.pop(form, (0, 0))
        halves = compared >= _COUNT_MAX
        counts[form] = ((compared >> halves) + 1, (times >> halves) + (form in changed))
    newest = list(counts.items())[-_NOISE_MAX:]
    return with_fields(host, noise=b"".join(_NOISE.pack(form, *count) for form, count in newest))


def is_noise(host: HostState, part: Part) -> bool:
    """Return whether a part has a number that changes at nearly each fetch."""
    if not _may_be_noise(part):
        return False
    found = (count for form, *count in _NOISE.iter_unpack(host.noise) if form == part.form)
    return any(compared >= _COMPARED_MIN and times >= _CHANGED_MIN * compared for compared, times in found)


def _may_be_noise(part: Part) -> bool:
    return not part.is_main and part.form != part.exact and part.words > 0
