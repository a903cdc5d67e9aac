"""What of a message is no text, as digests of its bytes."""

from collections.abc import Iterable

from nearstream.streams.fingerprints.hashing import HashKey
from nearstream.workers.mail.structure import Part
from nearstream.workers.mail.transfer import decode_transfer

_DECODED_MAX = 64
_DECODED_MAX_BYTES = 25 * 1024 * 1024
# They differ in each message, and say nothing that its sender wrote.
_SIGNATURES = frozenset({"application/pgp-signature", "application/pkcs7-signature", "application/x-pkcs7-signature"})


def digests(parts: Iterable[Part], key: HashKey) -> tuple[bytes, ...]:
    """Return the keyed digests of the contents of parts, each once, in ascending order.

    The first 64 parts of at most 25 MiB together count without their transfer encoding, the others as they were sent.

    Args:
        parts: The parts. Empty ones and signatures do not count.
        key: The deployment's key.
    """
    found = set()
    left = _DECODED_MAX_BYTES
    for number, part in enumerate(parts):
        left -= len(part.content)
        content = part.content
        if number < _DECODED_MAX and left >= 0:
            content = decode_transfer(content, part.head.encoding).content
        if not part.head.encoding or part.head.kind.startswith("text/"):
            content = content.replace(b"\r\n", b"\n")  # mail servers change the ends of lines
        if part.head.kind not in _SIGNATURES and (content := content.strip(b"\r\n")):
            found.add(key.digest(content))
    return tuple(sorted(found))
