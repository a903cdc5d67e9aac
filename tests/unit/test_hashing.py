"""Everything derived from the secret."""

from random import Random

import numpy as np
import pytest
from mmh3 import mmh3_x64_128_digest
from numpy.typing import NDArray

from streams.hashing import PUBLIC_SECRET, HashKey, Rolling, distinct, fmix64, mix

KEY = HashKey.public()
MASK = (1 << 64) - 1
C1, C2 = 0x87C37B91114253D5, 0x4CF5AD432745937F


def as_letters(bits: str) -> NDArray[np.uint64]:
    return KEY.table.take(np.frombuffer(bits.encode(), dtype=np.uint8))


def thue_morse(length: int) -> str:
    return "".join("ab"[number.bit_count() % 2] for number in range(length))


def word_hash(key: HashKey, text: str) -> int:
    values = key.table.take(np.frombuffer(text.encode(), dtype=np.uint8))
    rolling = Rolling(key.base)
    return int(fmix64(rolling.windows(rolling.prefix(values), len(text)))[0])


def test_another_secret_changes_every_derived_number() -> None:
    other = HashKey.from_secret(b"another secret of thirty-two bytes")
    names = ("fingerprint", "digest_key", "permutation", "base", "word_base", "sketch_salt", "ld_salt", "anchor_salt")
    assert all(getattr(KEY, name) != getattr(other, name) for name in names)
    assert not np.any(KEY.table == other.table)
    assert other != KEY


def test_equal_secrets_give_equal_keys() -> None:
    assert HashKey.from_secret(PUBLIC_SECRET) == KEY


def test_repr_hides_the_key() -> None:
    assert repr(KEY) == str(KEY) == "HashKey(0d3e89c8)"


def test_the_word_duck_has_its_golden_hash() -> None:
    assert word_hash(KEY, "duck") == 0xB33022166B7E2CC4


def test_the_byte_permutation_holds_every_value_once() -> None:
    assert sorted(KEY.permutation) == list(range(256))


@pytest.mark.parametrize("size", [1, 5, 4095, 4096, 10_000])
def test_runs_and_windows_are_the_polynomials_of_their_values(size: int) -> None:
    values = np.random.default_rng(size).integers(0, 2**64, size, dtype=np.uint64)
    rolling = Rolling(KEY.base)
    prefix = rolling.prefix(values.copy())
    width = min(size, 16)
    expected = 0
    for value in values[-width:].tolist():
        expected = (expected * KEY.base + value) & MASK
    assert int(rolling.windows(prefix, width)[-1]) == expected
    assert int(rolling.runs(prefix, np.array([size - width]), np.array([size]))[0]) == expected


def test_there_are_no_windows_wider_than_the_values() -> None:
    rolling = Rolling(KEY.base)
    assert rolling.windows(rolling.prefix(as_letters("abc")), 4).size == 0


def test_the_finaliser_and_the_mixer_are_those_of_the_page() -> None:
    x = 0x0123456789ABCDEF
    y = (x ^ x >> 33) * 0xFF51AFD7ED558CCD & MASK
    y = (y ^ y >> 33) * 0xC4CEB9FE1A85EC53 & MASK
    assert int(fmix64(np.array([x], dtype=np.uint64))[0]) == y ^ y >> 33
    assert int(mix(np.array([x], dtype=np.uint64))[0]) == (x ^ x >> 32) * 0xD6E8FEB86659FD93 & MASK


def test_distinct_values_come_back_in_order() -> None:
    assert distinct(np.array([5, 1, 5, 2**63, 1], dtype=np.uint64)).tolist() == [1, 5, 2**63]
    assert distinct(np.empty(0, dtype=np.uint64)).size == 0


def test_words_of_64_thue_morse_letters_differ_under_100_keys() -> None:
    word = thue_morse(64)
    opposite = word.translate(str.maketrans("ab", "ba"))
    for number in range(100):
        key = HashKey.from_secret(b"key %d" % number)
        assert word_hash(key, word) != word_hash(key, opposite)


def test_longer_thue_morse_words_would_collide_under_any_key() -> None:
    word = thue_morse(1024)
    opposite = word.translate(str.maketrans("ab", "ba"))
    for number in range(3):
        key = HashKey.from_secret(b"key %d" % number)
        assert word_hash(key, word) == word_hash(key, opposite)


def test_1024_payloads_of_one_mmh3_hash_have_different_small_keys() -> None:
    a, b = colliding_blocks()
    payloads = [b"".join(b if choice >> place & 1 else a for place in range(10)) for choice in range(1024)]
    assert len({mmh3_x64_128_digest(each, 7) for each in payloads}) == 1
    assert len({KEY.small_key(each) for each in payloads}) == 1024
    assert len({KEY.digest(each) for each in payloads}) == 1024


def colliding_blocks() -> tuple[bytes, bytes]:
    """Two UTF-8 strings of 32 bytes that mmh3 cannot tell apart, whatever stands before or after them.

    The differences of three 8-byte words cancel, since the seed enters no word on its way into the state.
    """
    words = [
        _twins(number, mixers, flip)
        for number, (mixers, flip) in enumerate([((C1, 31, C2), 36), ((C2, 33, C1), 32), ((C1, 31, C2), 63)])
    ]
    tail = b" q w z e"
    return b"".join(x for x, _ in words) + tail, b"".join(y for _, y in words) + tail


def _twins(seed: int, mixers: tuple[int, int, int], flip: int) -> tuple[bytes, bytes]:
    """8 bytes of UTF-8 each, x and y with T(y) = T(x) xor 2**flip, T the word mixer of mmh3."""
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
