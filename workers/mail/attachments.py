"""What of a message is no text, as digests of its bytes."""

import time
from collections.abc import Iterable, Iterator
from hashlib import blake2b
from math import inf

from nearstream.streams.fingerprints.hashing import HashKey
from nearstream.workers.mail.structure import Part
from nearstream.workers.mail.transfer import decode_blocks

_DIGEST_BYTES = 16
_DECODED_MAX = 64
_DECODED_MAX_BYTES = 25 * 1024 * 1024
# They differ in each message, and say nothing that its sender wrote.
_SIGNATURES = frozenset({"application/pgp-signature", "application/pkcs7-signature", "application/x-pkcs7-signature"})


def digests(parts: Iterable[Part], key: HashKey, until: float = inf) -> tuple[bytes, ...] | None:
    """Return the keyed digests of the contents of parts, each once, in ascending order.

    The first 64 parts of at most 25 MiB together count without their transfer encoding, the others as they were sent.

    Args:
        parts: The parts. Empty ones and signatures do not count.
        key: The deployment's key.
        until: The time of `time.monotonic()` at which to give up.

    Returns:
        None if there was not enough time.
    """
    found = set()
    left = _DECODED_MAX_BYTES
    for number, part in enumerate(parts):
        if part.head.kind in _SIGNATURES:
            continue
        left -= len(part.content)
        encoding = part.head.encoding if number < _DECODED_MAX and left >= 0 else ""
        size, hasher = 0, blake2b(digest_size=_DIGEST_BYTES, key=key.digest_key, person=b"nearstream-part")
        for block in _blocks(part.content, encoding):
            if time.monotonic() > until:
                return None
            size += len(block)
            hasher.update(block)
        if size:
            found.add(hasher.digest())
    return tuple(sorted(found))


def _blocks(content: bytes, encoding: str) -> Iterator[bytes]:
    if encoding:
        return decode_blocks(content, encoding)
    # Mail servers change the ends of lines.
    return iter((content.replace(b"\r\n", b"\n").strip(b"\n"),))
