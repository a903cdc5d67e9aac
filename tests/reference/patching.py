"""What turns one record into another, found in Python."""

from nearstream.streams.store.record import append_number, zigzag

_WINDOW = 5  # fewest bytes of a copy, because shorter ones hardly save any


def patch(other: bytes, text: bytes) -> bytes:
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


def _append_literal(patch: bytearray, literal: bytes) -> None:
    append_number(patch, len(literal))
    patch += literal
