"""Two text compressions of Coates with his estimate, as published.

Sources: Peter Coates, "Super Fast Estimates of Levenshtein Distance" (blog, here "blog") and "A Fast Metric of Document
Similarity" (13 September 2011, here "paper"). The estimate is of the edit distance. Neither source names a hash. Errors
of the sources are kept where they are part of the method, and the docstrings mention them.
"""

from typing import Final

import mmh3
import numpy as np
from numpy.typing import NDArray

ALPHANUMERIC: Final = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


def compress_to_symbols(
    text: str, *, rate: int, neighbourhood: int, remainder: int = 0, alphabet: str = ALPHANUMERIC
) -> str:
    """Compute the signature of the blog, section "How Does It Work?".

    It has about one symbol for every `rate` characters. H is the hash of each run of `neighbourhood` characters. Where
    H mod rate is `remainder`, the symbol alphabet[H mod len(alphabet)] is emitted. Both decisions depend on one
    residue, so only len(alphabet) / gcd(rate, len(alphabet)) symbols can occur. Of 62 symbols these are 31 for any
    other even rate, two for rate 31, and one for rates 62, 124 and 310. The source says "go to step 1", which would
    start again at the beginning of the text. It must mean step 2.

    Args:
        text: Raw characters, hashed as UTF-8 by the first u64 of MurmurHash3 x64 128 with seed 0.
        rate: C of the source, 50 to 500 for text.
        neighbourhood: N of the source, 6 to 20 characters.
        remainder: A number in [0, rate).
        alphabet: The characters from which symbols are taken.

    Raises:
        ValueError: A number is out of range.
    """
    _check(rate, neighbourhood, remainder)
    windows = (text[start : start + neighbourhood] for start in range(len(text) - neighbourhood + 1))
    hashes = (mmh3.hash64(window.encode("utf-8", "surrogatepass"), signed=False)[0] for window in windows)
    return "".join(alphabet[value % len(alphabet)] for value in hashes if value % rate == remainder)


def compress_to_bits(data: bytes, *, rate: int, neighbourhood: int, remainder: int = 0) -> NDArray[np.uint8]:
    """Compute the signature of the paper, section 3.1.

    It has one 0 or 1 for about every `rate` bytes. s is the sum of each run of `neighbourhood` bytes. Where s mod rate
    is `remainder`, the bit that a table has for s is emitted. Here this is the low bit of the finaliser of MurmurHash3.
    Two errors of the paper are corrected. Its "function of i", with i = s mod rate, would make all bits equal. Its
    windows "from position n, append character p + n" start too late: they start at 0 here, and the entering character
    is p + n - 1. The method ignores the order of bytes inside a window, and how many bits it emits depends on which
    sums the text has.

    Args:
        data: The bytes to compress.
        rate: c of the source, 25 to 200 for text.
        neighbourhood: n of the source, 4 to 10 bytes.
        remainder: k of the source, in [0, rate).

    Raises:
        ValueError: A number is out of range.
    """
    _check(rate, neighbourhood, remainder)
    sums = window_sums(data, neighbourhood)
    return (_fmix64(sums[sums % rate == remainder]) & 1).astype(np.uint8)


def window_sums(data: bytes, neighbourhood: int) -> NDArray[np.uint64]:
    """Return the sum of every run of `neighbourhood` bytes.

    This is the rolling sum of the paper, section 3.1. Fewer bytes have no sum.
    """
    totals = np.zeros(len(data) + 1, dtype=np.uint64)
    np.cumsum(np.frombuffer(data, dtype=np.uint8), dtype=np.uint64, out=totals[1:])
    return totals[neighbourhood:] - totals[: max(0, totals.size - neighbourhood)]


def scaled_distance(distance: int, lengths: tuple[int, int], signature_lengths: tuple[int, int]) -> float:
    """Estimate the edit distance of two texts from that of their signatures.

    The estimate is `distance` times the longer text over the longer signature. The blog and the paper say "multiply by
    C". But the table in the blog, section "How well does it work?", follows from this formula and not from that one, by
    which the distance of unrelated texts would exceed their lengths.

    Args:
        distance: Edit distance of both signatures.
        lengths: Lengths of both texts.
        signature_lengths: Lengths of both signatures.

    Raises:
        ValueError: Both signatures are empty, so nothing is known.
    """
    if not max(signature_lengths):
        raise ValueError("cannot scale a distance: both signatures are empty, at least one symbol expected")
    return distance * max(lengths) / max(signature_lengths)


def residual(distance: int, signature_lengths: tuple[int, int], expected: float = 1.0) -> float:
    """Return how far a distance exceeds the difference of lengths.

    The excess is divided by the smaller length, and near 0 for near-duplicates. This is the rule of the blog for web
    crawlers, at the end of the section "Some Real Examples".

    Args:
        distance: Edit distance of both signatures.
        signature_lengths: Lengths of both signatures.
        expected: Factor for the difference of lengths, the "expected-LD function" that users of the source calibrate.

    Raises:
        ValueError: A signature is empty.
    """
    if not min(signature_lengths):
        raise ValueError("cannot compute a residual: a signature is empty, at least one symbol expected in both")
    difference = max(signature_lengths) - min(signature_lengths)
    return (distance - expected * difference) / min(signature_lengths)


def _check(rate: int, neighbourhood: int, remainder: int) -> None:
    if neighbourhood < 1 or not 0 <= remainder < rate:
        raise ValueError(
            f"expected neighbourhood >= 1 and 0 <= remainder < rate, got {neighbourhood}, {remainder}, {rate}"
        )


def _fmix64(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Apply the 64-bit finaliser of MurmurHash3 (Appleby 2011)."""
    values = values ^ (values >> np.uint64(33))
    values *= np.uint64(0xFF51AFD7ED558CCD)
    values ^= values >> np.uint64(33)
    values *= np.uint64(0xC4CEB9FE1A85EC53)
    values ^= values >> np.uint64(33)
    return values
