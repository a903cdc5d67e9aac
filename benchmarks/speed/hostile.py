"""Texts that are made to be as slow to sign as possible."""

import random
from collections.abc import Callable

from benchmarks.speed import ours
from benchmarks.speed.measure import Effort, timed
from benchmarks.texts import english
from nearstream.schemas.documents.document import Document
from nearstream.streams.fingerprints.normalize import normalize

LARGEST = 1 << 20
_GROWTH = 11  # bytes of the normal form for each byte of U+FDFA


def hostile_texts(size: int) -> dict[str, str]:
    """Return texts of about `size` bytes, as sent or normalised."""
    rng = random.Random(1)
    letters = "abcdefghijklmnopqrstuvwxyz"
    return {
        "one word": "word " * (size // 5),
        "words of one letter": " ".join(rng.choices(letters, k=size // 2)),
        "one character": "v" * size,
        "short period": "abcdefgh" * (size // 8),
        "one line again": "the quick brown fox jumps over the lazy dog and runs away " * (size // 58),
        "falling marks": "a" + "\u0301\u0323" * (size // 4 - 1),
        "marks on letters": "a\u0323\u0301" * (size // 5),
        "musical symbols": "\U0001d160" * (size // 12),
        "lone surrogates": "a\ud800 " * (size // 5),
        "longest in NFKC": "\ufdfa" * (size // (3 * _GROWTH)),
        "thue-morse": "".join("ab"[bin(at).count("1") % 2] for at in range(size)),
        "thue-morse words": " ".join(
            "".join("ab"[bin(start + at).count("1") % 2] for at in range(64)) for start in range(0, size - 64, 65)
        ),
    }


def hostile_rows(size: int, effort: Effort) -> list[dict[str, object]]:
    """Compare the time of each text with English of equal bytes.

    `ratio` compares with English of as many bytes as the text or its normal form has, whichever has more, because both
    are limited. `ratio_as_sent` compares with English of as many bytes as were sent.
    """
    sign = ours.signer()
    rows: list[dict[str, object]] = []
    for name, text in hostile_texts(size).items():
        sent = len(text.encode("utf-8", "surrogatepass"))
        normal = len(normalize(text).data)
        us = timed(sign, [ours.document(text)], effort).us
        equal = _english_us(sign, max(sent, normal), effort)
        as_sent = equal if sent >= normal else _english_us(sign, sent, effort)
        rows.append(
            {
                "text": name,
                "bytes": sent,
                "normal_bytes": normal,
                "us_per_doc": round(us, 1),
                "ratio": round(us / equal, 3),
                "ratio_as_sent": round(us / as_sent, 3),
            }
        )
    return rows


def _english_us(sign: Callable[[Document], object], size: int, effort: Effort) -> float:
    text = english(size).encode()[:size].decode("utf-8", "ignore")
    return timed(sign, [ours.document(text)], effort).us
