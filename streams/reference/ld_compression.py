"""Coates' two compressions of a text with his estimate of edit distance, as they were published.

Sources: Peter Coates, "Super Fast Estimates of Levenshtein Distance" (blog, here "blog") and "A Fast Metric of Document
Similarity" (13 September 2011, here "paper"). Neither names a hash; errors of the sources are kept where they are the
method, and named.
"""

from typing import Final

import mmh3
import numpy as np
from numpy.typing import NDArray

ALPHANUMERIC: Final = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


def compress_to_symbols(
    text: str, *, rate: int, neighbourhood: int, remainder: int = 0, alphabet: str = ALPHANUMERIC
) -> str:
    """The signature of the blog, section "How Does It Work?": about one symbol for every `rate` characters.

    H is the hash of each run of `neighbourhood` characters; where H mod rate is `remainder`, the symbol
    alphabet[H mod len(alphabet)] is put out. Both decisions come from one residue, so only
    len(alphabet) / gcd(rate, len(alphabet)) symbols can occur: of 62 there are 31 for every even rate, two for 31, one
    for 62, 124 and 310. The steps "go to step 1" of the source would begin again at the start; step 2 is meant.

    Args:
        text: Raw characters; hashed as UTF-8 by the first u64 of MurmurHash3 x64 128, seed 0.
        rate: C of the source, 50 to 500 for text.
        neighbourhood: N of the source, 6 to 20 characters.
        remainder: In [0, rate).
        alphabet: What symbols are drawn from.

    Raises:
        ValueError: A number is out of range.
    """
    _check(rate, neighbourhood, remainder)
    windows = (text[start : start + neighbourhood] for start in range(len(text) - neighbourhood + 1))
    hashes = (mmh3.hash64(window.encode("utf-8", "surrogatepass"), signed=False)[0] for window in windows)
    return "".join(alphabet[value % len(alphabet)] for value in hashes if value % rate == remainder)


def compress_to_bits(data: bytes, *, rate: int, neighbourhood: int, remainder: int = 0) -> NDArray[np.uint8]:
    """The signature of the paper, section 3.1: one 0 or 1 for about every `rate` bytes.

    s is the sum of each run of `neighbourhood` bytes; where s mod rate is `remainder`, the bit that a table holds for s
    is put out; here the low bit of the finaliser of MurmurHash3. The paper's "function of i", with i = s mod rate,
    would make every bit the same, and its windows "from position n, append character p + n" start late: they start at 0
    and the entering character is p + n - 1. Blind to the order inside a window; how much is kept depends on which
    sums the text has.

    Args:
        data: Any bytes.
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
    """The rolling sum of the paper, section 3.1, of every run of so many bytes; none if there are fewer."""
    totals = np.zeros(len(data) + 1, dtype=np.uint64)
    np.cumsum(np.frombuffer(data, dtype=np.uint8), dtype=np.uint64, out=totals[1:])
    return totals[neighbourhood:] - totals[: max(0, totals.size - neighbourhood)]


def scaled_distance(distance: int, lengths: tuple[int, int], signature_lengths: tuple[int, int]) -> float:
    """Estimated edit distance of two texts: `distance` times the longer text over the longer signature.

    The blog and the paper say "multiply by C"; the table in the blog, section "How well does it work?", follows from
    this formula and not from that one, by which unrelated texts would be farther apart than they are long.

    Args:
        distance: Edit distance of both signatures.
        lengths: Of both texts.
        signature_lengths: Of both signatures.

    Raises:
        ValueError: Both signatures are empty: nothing is known.
    """
    if not max(signature_lengths):
        raise ValueError("a signature with at least one symbol expected")
    return distance * max(lengths) / max(signature_lengths)


def residual(distance: int, signature_lengths: tuple[int, int], expected: float = 1.0) -> float:
    """What is left of a distance beyond the difference of lengths, over the smaller length: near 0 for near-duplicates.

    The blog's rule for web crawlers, at the end of the section "Some Real Examples".

    Args:
        distance: Edit distance of both signatures.
        signature_lengths: Of both signatures.
        expected: Factor on the difference, the "expected-LD function" that users of the source calibrate.

    Raises:
        ValueError: A signature is empty.
    """
    if not min(signature_lengths):
        raise ValueError("signatures with at least one symbol expected")
    difference = max(signature_lengths) - min(signature_lengths)
    return (distance - expected * difference) / min(signature_lengths)


def _check(rate: int, neighbourhood: int, remainder: int) -> None:
    if neighbourhood < 1 or not 0 <= remainder < rate:
        raise ValueError(
            f"neighbourhood >= 1 and 0 <= remainder < rate expected, not {neighbourhood}, {remainder}, {rate}"
        )


def _fmix64(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The 64-bit finaliser of MurmurHash3 (Appleby 2011)."""
    values = values ^ (values >> np.uint64(33))
    values *= np.uint64(0xFF51AFD7ED558CCD)
    values ^= values >> np.uint64(33)
    values *= np.uint64(0xC4CEB9FE1A85EC53)
    values ^= values >> np.uint64(33)
    return values
