"""Hashes that authors of texts cannot aim, all from one secret of the deployment."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import accumulate, count, pairwise

import mmh3
import numpy as np
from numpy.typing import NDArray

from streams.runs import starts_run

PUBLIC_SECRET = b"nearstream public default key"


def constant(value: int) -> NDArray[np.uint64]:
    """An operand without dimensions: numpy would convert a Python number anew in each call, which takes longer."""
    return np.array(value, dtype=np.uint64)


_FMIX_SHIFT, _MIX_SHIFT = constant(33), constant(32)
_FMIX_FIRST, _FMIX_SECOND = constant(0xFF51AFD7ED558CCD), constant(0xC4CEB9FE1A85EC53)
_MIX_FACTOR = constant(0xD6E8FEB86659FD93)


@dataclass(frozen=True, repr=False)
class HashKey:
    """Everything derived from the secret; the secret itself is not kept.

    Keeps off authors of texts, who see no signatures. Whoever gets signatures of texts of his choice can solve for
    `table`: a party outside the trust border needs a key of its own.

    Attributes:
        fingerprint: 8 hex digits that name the key and tell nothing about it.
        digest_key: 32 bytes, the key of both digests.
        permutation: The 256 byte values in secret order, applied to what mmh3 hashes.
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
        """The key of a secret of any length; equal secrets give equal keys."""
        master = blake2b(secret, digest_size=32, person=b"nearstream-key").digest()
        order = np.frombuffer(_derive(master, b"bytes", 2048), dtype="<u8")
        return cls(
            fingerprint=_derive(master, b"fingerprint", 4).hex(),
            digest_key=_derive(master, b"digest", 32),
            permutation=np.argsort(order, kind="stable").astype(np.uint8).tobytes(),
            table=np.frombuffer(_derive(master, b"table", 2048), dtype="<u8").astype(np.uint64),
            # 5 mod 8 gives a base of the largest order that an odd number can have.
            base=_derive_number(master, b"base") & ~7 | 5,
            word_base=_derive_number(master, b"words") & ~7 | 5,
            sketch_salt=_derive_number(master, b"sketch"),
            ld_salt=_derive_number(master, b"ld"),
            anchor_salt=_derive_number(master, b"anchor"),
        )

    @classmethod
    def public(cls) -> "HashKey":
        """The key that everybody knows, for development."""
        return cls.from_secret(PUBLIC_SECRET)

    def __repr__(self) -> str:
        """The fingerprint only."""
        return f"HashKey({self.fingerprint})"

    def digest(self, data: bytes | memoryview) -> bytes:
        """16 bytes, keyed blake2b (RFC 7693)."""
        return blake2b(data, digest_size=16, key=self.digest_key).digest()

    def small_key(self, payload: bytes) -> bytes:
        """16 bytes: MurmurHash3 x64 128 of the payload, its bytes replaced through the secret permutation first.

        The seed of MurmurHash3 does not enter its blocks, so colliding payloads collide under every seed; the
        replacement destroys such collisions.
        """
        return mmh3.mmh3_x64_128_digest(payload.translate(self.permutation), 0)

    def small_keys(self, prefix: bytes, payloads: bytes, width: int) -> list[bytes]:
        """The small key of each `width` bytes of the payloads, with the prefix before them."""
        first, rest = prefix.translate(self.permutation), payloads.translate(self.permutation)
        return [
            mmh3.mmh3_x64_128_digest(first + rest[start : start + width], 0) for start in range(0, len(rest), width)
        ]


class Rolling:
    """Polynomial hashes of any run of a sequence from one prefix sum, modulo 2**64 (Karp and Rabin 1987).

    The hash of values v[s:e] is the sum of v[j] * base**(e - 1 - j). Holds the powers of its base for the longest
    sequence seen, 16 to 32 bytes an element.
    """

    def __init__(self, base: int) -> None:
        """Takes an odd base, else no inverse exists."""
        self._base = base
        self._tables = _power_tables(base, 1 << 12)

    def prefix(self, values: NDArray[np.uint64]) -> NDArray[np.uint64]:
        """Prefix sums, one element longer than `values`."""
        inverses = self._upto(values.size)[1]
        # Stored backwards: where input and output both lie forwards, numpy adds up four times as slowly.
        terms = np.empty(values.size, dtype=np.uint64)[::-1]
        np.multiply(values, inverses[1 : values.size + 1], out=terms)
        sums = np.empty(values.size + 1, dtype=np.uint64)
        sums[0] = 0
        np.add.accumulate(terms, out=sums[1:])
        return sums

    def runs(
        self, prefix: NDArray[np.uint64], starts: NDArray[np.int64], ends: NDArray[np.int64]
    ) -> NDArray[np.uint64]:
        """Hashes of the runs [start, end)."""
        hashes = prefix.take(ends)
        hashes -= prefix.take(starts)
        hashes *= self._upto(prefix.size)[0].take(ends)
        return hashes

    def windows(self, prefix: NDArray[np.uint64], width: int) -> NDArray[np.uint64]:
        """Hashes of all runs of `width` values, in order; none if there are fewer values."""
        if prefix.size <= width:
            return np.empty(0, dtype=np.uint64)
        hashes = prefix[width:] - prefix[:-width]
        hashes *= self._upto(prefix.size)[0][width : prefix.size]
        return hashes

    def mixed_windows(self, prefix: NDArray[np.uint64], width: int, salt: int) -> NDArray[np.uint64]:
        """Hashes of all runs of `width` values, salted, with good top bits."""
        hashes = self.windows(prefix, width)
        hashes += constant(salt)
        return mix(hashes)

    def _upto(self, size: int) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
        """Powers and inverse powers with at least the exponents 0 to `size`."""
        tables = self._tables
        if tables[0].size <= size:
            # Replaced as a whole: another thread goes on with the tables that it holds.
            tables = self._tables = _power_tables(self._base, 1 << size.bit_length())
        return tables


def fmix64(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The 64-bit finaliser of MurmurHash3 (Appleby 2011), in place: good in all bits."""
    shifted = values >> _FMIX_SHIFT
    values ^= shifted
    values *= _FMIX_FIRST
    values ^= np.right_shift(values, _FMIX_SHIFT, out=shifted)
    values *= _FMIX_SECOND
    values ^= np.right_shift(values, _FMIX_SHIFT, out=shifted)
    return values


def mix(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """One multiply, in place: good in the top bits only, for hashes needed at every byte."""
    values ^= values >> _MIX_SHIFT
    values *= _MIX_FACTOR
    return values


def distinct(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The values ascending, each once."""
    return distinct_rows([values])[0]


def distinct_rows(rows: Sequence[NDArray[np.uint64]]) -> list[NDArray[np.uint64]]:
    """The values of each row ascending, each once.

    Sorting in place by vector instructions is ten times as fast as numpy.unique.
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
    """The first `size` bytes of a keystream for one purpose: keyed blake2b in counter mode."""
    stream = b""
    for block in count():
        if len(stream) >= size:
            break
        stream += blake2b(block.to_bytes(4, "little"), key=master, digest_size=64, person=purpose).digest()
    return stream[:size]


def _derive_number(master: bytes, purpose: bytes) -> int:
    return int.from_bytes(_derive(master, purpose, 8), "little")
