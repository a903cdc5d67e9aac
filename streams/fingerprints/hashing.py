"""Keyed hashes, all derived from one secret of the deployment.

An author who does not know the secret cannot construct texts with chosen hashes.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import accumulate, count, pairwise

import mmh3
import numpy as np
from numpy.typing import NDArray

from nearstream.streams.fingerprints.ragged import starts_run

PUBLIC_SECRET = b"nearstream public default key"
DIGEST_BYTES = 16


def constant(value: int) -> NDArray[np.uint64]:
    """Return a number as an operand, an array without dimensions.

    numpy would convert a Python number again in each call, which takes longer.
    """
    return np.array(value, dtype=np.uint64)


_FMIX_SHIFT, _MIX_SHIFT = constant(33), constant(32)
_FMIX_FIRST, _FMIX_SECOND = constant(0xFF51AFD7ED558CCD), constant(0xC4CEB9FE1A85EC53)
_MIX_FACTOR = constant(0xD6E8FEB86659FD93)


@dataclass(frozen=True, repr=False)
class HashKey:
    """Hash parameters derived from a secret, which is not kept.

    It protects against authors of texts, because they do not see signatures. Anyone who can obtain signatures of chosen
    texts can recover `table`, so a party that is not trusted needs a key of its own.

    Attributes:
        fingerprint: 8 hex digits that name the key and reveal nothing about it.
        digest_key: 32 bytes, the key of both digests.
        permutation: The 256 byte values in secret order, applied to the input of mmh3.
        table: 256 random u64, one for each byte value.
        base: Odd base of polynomials over bytes.
        word_base: Odd base of polynomials over words.
        sketch_salt: Added to the polynomial of a shingle.
        ld_salt: Added to the polynomial of an LD window.
        anchor_salt: Added to the polynomial of an anchor window.
    """

    fingerprint: str
    digest_key: bytes
    permutation: bytes
    table: NDArray[np.uint64] = field(compare=False)
    base: int
    word_base: int
    sketch_salt: int
    ld_salt: int
    anchor_salt: int

    @classmethod
    def from_secret(cls, secret: bytes) -> "HashKey":
        """Derive the key of a secret of any length.

        Equal secrets give equal keys.
        """
        master = blake2b(secret, digest_size=32, person=b"nearstream-key").digest()
        order = np.frombuffer(_derive(master, b"bytes", 2048), dtype="<u8")
        return cls(
            fingerprint=_derive(master, b"fingerprint", 4).hex(),
            digest_key=_derive(master, b"digest", 32),
            permutation=np.argsort(order, kind="stable").astype(np.uint8).tobytes(),
            table=np.frombuffer(_derive(master, b"table", 2048), dtype="<u8").astype(np.uint64),
            # A base of 5 mod 8 has the largest multiplicative order that is possible modulo 2**64.
            base=_derive_number(master, b"base") & ~7 | 5,
            word_base=_derive_number(master, b"words") & ~7 | 5,
            sketch_salt=_derive_number(master, b"sketch"),
            ld_salt=_derive_number(master, b"ld"),
            anchor_salt=_derive_number(master, b"anchor"),
        )

    @classmethod
    def public(cls) -> "HashKey":
        """Return the publicly known key, for development."""
        return cls.from_secret(PUBLIC_SECRET)

    def __repr__(self) -> str:
        """Show the fingerprint only."""
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


class Rolling:
    """Polynomial hashes of runs of values, modulo 2**64.

    After Karp and Rabin (1987), the hash of values v[s:e] is the sum of v[j] * base**(e - 1 - j). One prefix sum over a
    sequence gives the hash of every run in it. The object keeps the powers of its base for the longest sequence seen,
    16 to 32 bytes per element.
    """

    def __init__(self, base: int) -> None:
        """Prepare the powers of an odd base.

        An even base has no inverse modulo 2**64.
        """
        self._base = base
        self._tables = _power_tables(base, 1 << 12)

    def prefix(self, values: NDArray[np.uint64]) -> NDArray[np.uint64]:
        """Return the prefix sums of values, with one element more than `values`."""
        inverses = self._upto(values.size)[1]
        # The terms are stored backwards, because numpy accumulates four times as slowly if input and output are both
        # stored forwards.
        terms = np.empty(values.size, dtype=np.uint64)[::-1]
        np.multiply(values, inverses[1 : values.size + 1], out=terms)
        sums = np.empty(values.size + 1, dtype=np.uint64)
        sums[0] = 0
        np.add.accumulate(terms, out=sums[1:])
        return sums

    def runs(
        self, prefix: NDArray[np.uint64], starts: NDArray[np.int64], ends: NDArray[np.int64]
    ) -> NDArray[np.uint64]:
        """Return the hashes of the runs [start, end).

        Args:
            prefix: Prefix sums of the sequence.
            starts: Start of each run.
            ends: End of each run.
        """
        hashes = prefix.take(ends)
        hashes -= prefix.take(starts)
        hashes *= self._upto(prefix.size)[0].take(ends)
        return hashes

    def windows(self, prefix: NDArray[np.uint64], width: int) -> NDArray[np.uint64]:
        """Return the hashes of all runs of `width` values, in order.

        There are none if there are fewer values.
        """
        if prefix.size <= width:
            return np.empty(0, dtype=np.uint64)
        hashes = prefix[width:] - prefix[:-width]
        hashes *= self._upto(prefix.size)[0][width : prefix.size]
        return hashes

    def mixed_windows(self, prefix: NDArray[np.uint64], width: int, salt: int) -> NDArray[np.uint64]:
        """Return the hashes of all runs of `width` values, salted and mixed.

        Only their top bits are well mixed, see `mix`.
        """
        hashes = self.windows(prefix, width)
        hashes += constant(salt)
        return mix(hashes)

    def _upto(self, size: int) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
        """Return powers and inverse powers for exponents up to at least `size`."""
        tables = self._tables
        if tables[0].size <= size:
            # Replace both tables at once, because another thread may be using the old ones.
            tables = self._tables = _power_tables(self._base, 1 << size.bit_length())
        return tables


def fmix64(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Mix hashes in place with the 64-bit finaliser of MurmurHash3 (Appleby 2011).

    All bits of the result are well mixed.
    """
    shifted = values >> _FMIX_SHIFT
    values ^= shifted
    values *= _FMIX_FIRST
    values ^= np.right_shift(values, _FMIX_SHIFT, out=shifted)
    values *= _FMIX_SECOND
    values ^= np.right_shift(values, _FMIX_SHIFT, out=shifted)
    return values


def mix(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Mix hashes in place with one multiplication.

    Only the top bits are well mixed. This is for hashes that are needed at every byte, where `fmix64` takes too long.
    """
    values ^= values >> _MIX_SHIFT
    values *= _MIX_FACTOR
    return values


def distinct(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return the distinct values in ascending order."""
    return distinct_rows([values])[0]


def distinct_rows(rows: Sequence[NDArray[np.uint64]]) -> list[NDArray[np.uint64]]:
    """Return the distinct values of each row in ascending order.

    numpy sorts in place with vector instructions, which makes this ten times as fast as numpy.unique.
    """
    values = np.concatenate(rows)
    bounds = [0, *accumulate([row.size for row in rows])]
    for start, stop in pairwise(bounds):
        values[start:stop].sort()
    kept = starts_run(values, bounds).nonzero()[0]
    if kept.size < values.size:
        values, bounds = values.take(kept), kept.searchsorted(bounds).tolist()
    return [values[start:stop] for start, stop in pairwise(bounds)]


def _power_tables(base: int, size: int) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    return _powers(base, size), _powers(pow(base, -1, 1 << 64), size)


def _powers(base: int, size: int) -> NDArray[np.uint64]:
    powers = np.full(size, base, dtype=np.uint64)
    powers[0] = 1
    return np.multiply.accumulate(powers, out=powers)


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
