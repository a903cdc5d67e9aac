"""Signatures with any numbers, for both forms of comparing."""

import struct
from random import Random

import numpy as np
from msgspec.structs import replace

from nearstream.schemas.documents.signature import Signature
from tests.reference.ld import pack_varints, pack_words
from tests.support.made_up import sign

BASE = sign("a text whose fields are replaced by others")
_WINDOW = 16


def made_up(random: Random, parts: list[list[int]], *, is_split: bool) -> Signature:
    """Return a signature of some parts, with gaps and counts as no signer would make them.

    Args:
        random: A source of numbers.
        parts: Symbols of 19 bits. Texts with equal parts have common text.
        is_split: Whether gaps are stored apart.
    """
    symbols = [symbol for part in random.choices(parts, k=random.randint(0, 6)) for symbol in part]
    noise = random.choice((0.0, 0.02, 0.3))
    symbols = [random.randrange(1 << 19) if random.random() < noise else symbol for symbol in symbols]
    if is_split:
        symbols = [symbol >> 3 for symbol in symbols]
    rate = 1 << random.randint(3, 6)
    usual = random.choice(((1, rate), (rate,), (1, rate, 9_000)))
    steps = np.array([random.randint(0, 2 * random.choice(usual)) for _ in symbols], np.int64)
    if is_split:
        ld, gaps = np.array(symbols, "<u2").tobytes(), pack_varints(steps)
        steps = steps * (rate // 8)
    else:
        ld, gaps = pack_words(symbols, steps), b""
    n_bytes = int(steps.sum()) + _WINDOW + random.choice((0, 1, rate, 20 * rate))
    characters = random.randint(-(-n_bytes // 4), n_bytes)
    words = random.randint(1, characters)
    return replace(
        BASE,
        id=random.choice("abc"),
        lineage=random.choice((None, None, "x")),
        digest=random.choice((BASE.digest, random.randbytes(16), random.randbytes(16))),
        n_bytes=n_bytes,
        characters=characters,
        words=words,
        shingles=random.randint(1, words),
        spaceless=random.random() < 0.2,
        sketch=_sketch(random),
        rate=rate if symbols else random.choice((0, rate)),
        ld=ld,
        gaps=gaps,
    )


def _sketch(random: Random) -> bytes:
    """Return a sketch of slots of any width, of which many are equal to those of others."""
    slots = [random.randrange(16) if random.random() < 0.3 else slot % 16 for slot in range(128)]
    if random.random() < 0.5:
        return bytes(low | high << 4 for low, high in zip(slots[::2], slots[1::2], strict=True))
    layout = random.choice("BHI")
    return struct.pack(f"<128{layout}", *(slot | random.getrandbits(4) << 4 for slot in slots))


def made_of(symbols: list[int]) -> Signature:
    """Return a signature of these symbols of 19 bits, one in 8 bytes."""
    steps = np.full(len(symbols), 8, np.int64)
    ld = pack_words(symbols, steps)
    n_bytes = 8 * len(symbols) + _WINDOW
    digest = np.array(symbols[:2], "<i8").tobytes()
    return replace(
        BASE, digest=digest, n_bytes=n_bytes, characters=n_bytes, words=len(symbols), rate=8, ld=ld, gaps=b""
    )
