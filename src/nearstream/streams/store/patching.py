"""The record of a copy as its differences from that of the founder of its family.

A record that begins with `PATCH` is a patch. Any other one begins with the size of an id, which is smaller. Then follow
steps that append to the result:

    literal   unsigned LEB128: a count of bytes, then these bytes
    copy      unsigned LEB128: a count of bytes of the other record, then zigzag LEB128: how far their first one is
              from where the last copy would go on, had the literal bytes replaced as many. The last step may lack it
"""

from nearstream.streams.native import native
from nearstream.streams.store.numbers import signed, take_number

PATCH = b"\xff\xff"


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
    packed = PATCH + native.patch(founder, record)
    return packed if 3 * len(packed) <= 2 * len(record) else b""


def lengthened(packed: bytes, founder: bytes) -> bytes:
    """Return the record that was shortened."""
    return patched(founder, packed[len(PATCH) :])
