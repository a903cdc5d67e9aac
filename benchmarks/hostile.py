"""Texts made to cost as much as they can."""

import random
from collections.abc import Callable

from benchmarks import ours
from benchmarks.measure import Effort, timed
from benchmarks.texts import english
from schemas.document import Document
from streams.normalize import normalize

LARGEST = 1 << 20
_GROWTH = 11  # bytes of the normal form for each byte of U+FDFA


def hostile_texts(size: int) -> dict[str, str]:
    """Texts of about so many bytes, as sent or as a normal form."""
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
        "thue-morse": "".join("ab"[bin(place).count("1") % 2] for place in range(size)),
        "thue-morse words": " ".join(
            "".join("ab"[bin(start + place).count("1") % 2] for place in range(64)) for start in range(0, size - 64, 65)
        ),
    }


def hostile_rows(engine: str, size: int, effort: Effort) -> list[dict[str, object]]:
    """Time of each text over that of English of equal bytes.

    Equal are the bytes of the text or of its normal form, whichever are more: both are limited. `ratio_as_sent` is over
    English of as many bytes as were sent.
    """
    sign = ours.signer(engine)
    rows: list[dict[str, object]] = []
    for name, text in hostile_texts(size).items():
        sent = len(text.encode("utf-8", "surrogatepass"))
        normal = normalize(text).data.size
        us = timed(sign, [ours.document(text)], effort).us
        equal = _english_us(sign, max(sent, normal), effort)
        as_sent = equal if sent >= normal else _english_us(sign, sent, effort)
        rows.append(
            {
                "engine": engine,
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
