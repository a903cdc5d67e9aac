"""The record of a copy as its differences from that of the founder of its family.

A record that begins with `PATCH` is a patch. Any other one begins with the size of an id, which is smaller. Then follow
steps that append to the result:

    literal   unsigned LEB128: a count of bytes, then these bytes
    copy      unsigned LEB128: a count of bytes of the other record, then zigzag LEB128: how far their first one is
              from where the last copy would go on, had the literal bytes replaced as many. The last step may lack it
"""

from nearstream.streams.native import fastest, native
from nearstream.streams.store.numbers import append_number, signed, take_number, zigzag

PATCH = b"\xff\xff"
_WINDOW = 5  # fewest bytes of a copy, because shorter ones hardly save any


def patch_slowly(other: bytes, text: bytes) -> bytes:
    """Return the patch that turns one record into another.

    It is greedy: from left to right, each copy begins as early as possible and is as long as possible. Of several
    places to copy from, the one that continues the last copy is taken, or else the first one.
    """
    places: dict[bytes, int] = {}
    for at in range(len(other) - _WINDOW + 1):
        places.setdefault(other[at : at + _WINDOW], at)
    patch = bytearray()
    at = done = behind = 0  # `behind` is the end of the last copy in the other text part
    while at <= len(text) - _WINDOW:
        window, expected = text[at : at + _WINDOW], behind + at - done
        start = expected if other[expected : expected + _WINDOW] == window else places.get(window, -1)
        if start < 0:
            at += 1
            continue
        size = _WINDOW
        while at + size < len(text) and start + size < len(other) and text[at + size] == other[start + size]:
            size += 1
        _append_literal(patch, text[done:at])
        jump = start - expected
        append_number(patch, size)
        append_number(patch, zigzag(jump))
        at = done = at + size
        behind = start + size
    if done < len(text):
        _append_literal(patch, text[done:])
    return bytes(patch)


patch = fastest(native.patch, patch_slowly)


def patched(other: bytes, patch: bytes) -> bytes:
    """Return the record into which a patch turns another one."""
    if not patch:
        return other
    text, at, start = bytearray(), 0, 0
    while at < len(patch):
        size, at = take_number(patch, at)
        text += patch[at : at + size]
        at, start = at + size, start + size
        if at < len(patch):
            size, at = take_number(patch, at)
            jump, at = take_number(patch, at)
            start += signed(jump)
            text += other[start : start + size]
            start += size
    return bytes(text)


def shortened(record: bytes, founder: bytes) -> bytes:
    """Return a record as a patch of that of the founder of its family, or nothing if that saves less than a third."""
    packed = PATCH + patch(founder, record)
    return packed if 3 * len(packed) <= 2 * len(record) else b""


def lengthened(packed: bytes, founder: bytes) -> bytes:
    """Return the record that was shortened."""
    return patched(founder, packed[len(PATCH) :])


def _append_literal(patch: bytearray, literal: bytes) -> None:
    append_number(patch, len(literal))
    patch += literal
