"""Texts that collide under hash functions without a secret key."""

from random import Random

import pytest

C1, C2 = 0x87C37B91114253D5, 0x4CF5AD432745937F
MASK = (1 << 64) - 1


def thue_morse(length: int) -> str:
    return "".join("ab"[number.bit_count() % 2] for number in range(length))


def colliding_blocks() -> tuple[bytes, bytes]:
    """Return two UTF-8 strings of 32 bytes with equal mmh3 hashes in any context.

    The hash stays equal whatever text comes before or after the block. The differences of three 8-byte words cancel,
    since the seed does not enter the mixing of a word.
    """
    words = [
        _twins(number, mixers, flip)
        for number, (mixers, flip) in enumerate([((C1, 31, C2), 36), ((C2, 33, C1), 32), ((C1, 31, C2), 63)])
    ]
    tail = b" q w z e"
    return b"".join(x for x, _ in words) + tail, b"".join(y for _, y in words) + tail


def _twins(seed: int, mixers: tuple[int, int, int], flip: int) -> tuple[bytes, bytes]:
    """Return two words of 8 UTF-8 bytes whose mixed values differ in one bit.

    For the returned x and y, T(y) = T(x) xor 2**flip, where T is the word mixer of mmh3.
    """
    first, turn, second = mixers
    back, forth = pow(second, -1, 1 << 64), pow(first, -1, 1 << 64)
    random = Random(seed)
    for _ in range(1_000_000):
        x = "".join(chr(random.choice((random.randrange(32, 127), random.randrange(0x800)))) for _ in range(8)).encode()
        mixed = int.from_bytes(x[:8], "little") * first & MASK
        mixed = (mixed << turn | mixed >> 64 - turn) & MASK
        mixed = ((mixed * second & MASK) ^ 1 << flip) * back & MASK
        y = ((mixed >> turn | mixed << 64 - turn) & MASK) * forth & MASK
        if _is_text(x[:8]) and _is_text(y.to_bytes(8, "little")):
            return x[:8], y.to_bytes(8, "little")
    pytest.fail("no pair found")


def _is_text(data: bytes) -> bool:
    try:
        return bool(data.decode())
    except UnicodeDecodeError:
        return False
