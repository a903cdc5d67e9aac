"""Keyed hashes, all derived from one secret of the deployment.

An author who does not know the secret cannot construct texts with chosen hashes.
"""

import struct
from dataclasses import dataclass, field
from functools import cache
from hashlib import blake2b
from itertools import count

import mmh3

PUBLIC_SECRET = b"nearstream public default key"
DIGEST_BYTES = 16


@dataclass(frozen=True, repr=False)
class HashKey:
    """Hash parameters derived from a secret, which is not kept.

    It protects against authors of texts, because they do not see signatures. Anyone who can obtain signatures of chosen
    texts can recover `table_bytes`, so a party that is not trusted needs a key of its own.
    """

    fingerprint: str  # 8 hex digits that name the key and reveal nothing about it
    digest_key: bytes  # 32 bytes, the key of both digests
    permutation: bytes  # the 256 byte values in secret order, applied to the input of mmh3
    table_bytes: bytes = field(compare=False)  # 256 random u64, one for each byte value, in little-endian order
    base: int  # odd base of polynomials over bytes
    word_base: int  # odd base of polynomials over words
    sketch_salt: int  # added to the polynomial of a shingle
    ld_salt: int  # added to the polynomial of an LD window
    anchor_salt: int  # added to the polynomial of an anchor window

    @classmethod
    def from_secret(cls, secret: bytes) -> "HashKey":
        """Derive the key of a secret of any length."""
        master = blake2b(secret, digest_size=32, person=b"nearstream-key").digest()
        order = struct.unpack("<256Q", _derive(master, b"bytes", 2048))
        return cls(
            fingerprint=_derive(master, b"fingerprint", 4).hex(),
            digest_key=_derive(master, b"digest", 32),
            permutation=bytes(sorted(range(256), key=order.__getitem__)),
            table_bytes=_derive(master, b"table", 2048),
            # A base of 5 mod 8 has the largest multiplicative order that is possible modulo 2**64.
            base=_derive_number(master, b"base") & ~7 | 5,
            word_base=_derive_number(master, b"words") & ~7 | 5,
            sketch_salt=_derive_number(master, b"sketch"),
            ld_salt=_derive_number(master, b"ld"),
            anchor_salt=_derive_number(master, b"anchor"),
        )

    @classmethod
    @cache  # each address of a mail is compared with it
    def public(cls) -> "HashKey":
        """Return the publicly known key, for development."""
        return cls.from_secret(PUBLIC_SECRET)

    def __repr__(self) -> str:
        return f"HashKey({self.fingerprint})"

    def digest(self, data: bytes | memoryview) -> bytes:
        """Return the digest of data, 16 bytes of keyed blake2b (RFC 7693)."""
        return blake2b(data, digest_size=DIGEST_BYTES, key=self.digest_key).digest()

    def small_key(self, payload: bytes) -> bytes:
        """Return a short key of a payload, 16 bytes.

        It is MurmurHash3 x64 128 of the payload after its bytes were replaced through the secret permutation. The seed
        of MurmurHash3 does not enter its blocks, so payloads that collide do so under every seed. The replacement
        destroys such collisions.
        """
        return mmh3.mmh3_x64_128_digest(payload.translate(self.permutation), 0)

    def small_keys(self, prefix: bytes, payloads: bytes, width: int) -> list[bytes]:
        """Return the first half of the short key of each payload behind a prefix."""
        first, rest = prefix.translate(self.permutation), payloads.translate(self.permutation)
        whole = (first + rest[at : at + width] for at in range(0, len(rest), width))
        return [mmh3.mmh3_x64_128_digest(each, 0)[:8] for each in whole]


def _derive(master: bytes, purpose: bytes, size: int) -> bytes:
    """Return `size` bytes for one purpose, from keyed blake2b in counter mode."""
    stream = b""
    for block in count():
        if len(stream) >= size:
            break
        stream += blake2b(block.to_bytes(4, "little"), key=master, digest_size=64, person=purpose).digest()
    return stream[:size]


def _derive_number(master: bytes, purpose: bytes) -> int:
    return int.from_bytes(_derive(master, purpose, 8), "little")
