"""What of a message is no text, as digests of its bytes."""

import time
from collections.abc import Iterable, Iterator
from hashlib import blake2b
from math import inf

from nearstream.streams.fingerprints.hashing import HashKey
from nearstream.workers.mail.structure import Part
from nearstream.workers.mail.transfer import UnsoundError, decode_blocks

_DIGEST_BYTES = 16
_DECODED_MAX = 64
_DECODED_MAX_BYTES = 25 * 1024 * 1024
_BLOCK_BYTES = 256 * 1024
_UNSOUND_MAX_BYTES = 1024 * 1024  # which are decoded in some 15 ms
# Signatures differ in each message, and say nothing that its sender wrote. What lies elsewhere is not in the message.
_NOT_COUNTED = frozenset(
    {
        *("application/pgp-signature", "application/pkcs7-signature", "application/x-pkcs7-signature"),
        "message/external-body",
    }
)


def digests(parts: Iterable[Part], key: HashKey, until: float = inf) -> tuple[bytes, ...] | None:
    """Return the keyed digests of the contents of parts, each once, in ascending order.

    The first 64 parts of at most 25 MiB together count without their transfer encoding, the others as they were sent.

    Args:
        parts: The parts. Empty ones, signatures and what lies elsewhere do not count.
        key: The deployment's key.
        until: The time of `time.monotonic()` at which to give up.

    Returns:
        None if there was not enough time, or if a part of more than 1 MiB is encoded so that its time is not bounded.
    """
    found = set()
    left, unsound_max = _DECODED_MAX_BYTES, _DECODED_MAX_BYTES if until == inf else _UNSOUND_MAX_BYTES
    for number, part in enumerate(parts):
        if part.head.kind in _NOT_COUNTED:
            continue
        left -= len(part.content)
        encoding = part.head.encoding if number < _DECODED_MAX and left >= 0 else ""
        size, hasher = 0, blake2b(digest_size=_DIGEST_BYTES, key=key.digest_key, person=b"nearstream-part")
        try:
            for block in decode_blocks(part.content, encoding, unsound_max) if encoding else _lines(part.content):
                if time.monotonic() > until:
                    return None
                size += len(block)
                hasher.update(block)
        except UnsoundError:
            return None
        if size:
            found.add(hasher.digest())
    return tuple(sorted(found))


def _lines(content: bytes) -> Iterator[bytes]:
    """Yield a content in blocks, with line ends of one kind, since mail servers change them, and none at its ends."""
    start, is_begun, newlines = 0, False, 0
    while start < len(content):
        end = start + _BLOCK_BYTES
        end += content[end - 1 : end + 1] == b"\r\n"
        block = content[start:end].replace(b"\r\n", b"\n")
        inner = block.strip(b"\n")
        if inner:
            before = newlines + len(block) - len(block.lstrip(b"\n"))
            yield b"\n" * before * is_begun + inner
            is_begun, newlines = True, len(block) - len(block.rstrip(b"\n"))
        else:
            newlines += len(block)
            yield b""
        start = end
