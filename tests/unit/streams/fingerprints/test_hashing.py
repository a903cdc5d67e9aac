"""Everything derived from the secret."""

import numpy as np
import pytest
from mmh3 import mmh3_x64_128_digest
from numpy.typing import NDArray

from nearstream.streams.fingerprints.hashing import PUBLIC_SECRET, HashKey
from nearstream.streams.fingerprints.polynomials import Rolling, distinct, fmix64, mix
from tests.support.collisions import MASK, colliding_blocks, thue_morse

KEY = HashKey.public()


def as_letters(bits: str) -> NDArray[np.uint64]:
    return KEY.table.take(np.frombuffer(bits.encode(), dtype=np.uint8))


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
