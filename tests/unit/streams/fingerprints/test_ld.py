"""The LD signature at its own rate and at coarser ones."""

from dataclasses import replace
from random import Random

import numpy as np
import pytest

from nearstream.schemas.documents.signature import Signature
from nearstream.streams.fingerprints.hashing import HashKey
from nearstream.streams.fingerprints.ld import LdSignature, LdView, compared_bits, kept_symbols, ld_signatures, view
from nearstream.streams.fingerprints.parameters import LdRules
from nearstream.streams.fingerprints.shingles import FeatureHasher
from nearstream.streams.signing.scheme import preset

KEY = HashKey.public()
HASHER = FeatureHasher(KEY, 64)
STANDARD, COMPACT = LdRules(), preset("compact", KEY).ld
assert COMPACT is not None
UNBOUND = 1 << 30


def letters(size: int, seed: int = 1, alphabet: str = "etaoin shrdlu") -> bytes:
    return "".join(Random(seed).choices(alphabet, k=size)).encode()


def signed(data: bytes, rules: LdRules) -> Signature:
    windows = HASHER.byte_windows(HASHER.joined([data]), rules.window_bytes, KEY.ld_salt)
    (ld,) = ld_signatures(windows, rules.first_rate(len(data)), rules)
    none = bytes(16)
    return Signature(
        "s", "c", "i", none, none, 0, len(data), len(data), 0, 0, False, b"", ld.rate, ld.ld, ld.gaps, b""
    )  # fmt: skip


def at_rate(rate: int, rules: LdRules = STANDARD) -> LdRules:
    return replace(rules, rates=(rate,), lengths=(), max_symbols=UNBOUND)


def symbols_of(data: bytes, rate: int) -> dict[int, int]:
    seen = view(signed(data, at_rate(rate)), rate, 19)
    return dict(zip(seen.positions.tolist(), seen.symbols.tolist(), strict=True))


def same(a: LdView, b: LdView) -> bool:
    return np.array_equal(a.symbols, b.symbols) and np.array_equal(a.positions, b.positions)


@pytest.mark.parametrize("rules", [STANDARD, COMPACT], ids=["words", "split"])
@pytest.mark.parametrize("data", [letters(30_000), letters(8000, 2, "ab"), b"ab" * 5000 + letters(9000), letters(15)])
@pytest.mark.parametrize("rate", [8, 16, 64])
def test_a_finer_signature_views_exactly_as_a_coarser_one(data: bytes, rate: int, rules: LdRules) -> None:
    fine = signed(data, at_rate(rate, rules))
    for doublings in range(6):
        coarse = signed(data, at_rate(rate << doublings, rules))
        for bits in range(1, rules.symbol_bits - doublings + 1):
            assert same(view(fine, rate << doublings, bits), view(coarse, rate << doublings, bits))


@pytest.mark.parametrize(("rate", "bits"), [(4, 8), (24, 8), (8, 20), (16, 19), (8, 0), (1 << 30, 1), (0, 8), (-8, 8)])
def test_a_view_that_cannot_be_had_is_refused(rate: int, bits: int) -> None:
    with pytest.raises(ValueError, match="no view at rate"):
        view(signed(letters(500), STANDARD), rate, bits)


def test_compact_symbols_have_16_bits() -> None:
    signature = signed(letters(3000), COMPACT)
    assert view(signature, 16, 16).symbols.size == len(signature.ld) // 2
    with pytest.raises(ValueError, match="16 bits"):
        view(signature, 16, 17)


def test_a_view_has_symbols_and_positions_of_fixed_types() -> None:
    for rules in (STANDARD, COMPACT):
        for data in (b"", letters(4000)):
            seen = view(signed(data, rules), 32, 10)
            assert (seen.symbols.dtype, seen.positions.dtype) == (np.uint32, np.int64)


def test_a_passage_keeps_its_symbols_inside_a_larger_text() -> None:
    passage, before = letters(3000, 7), letters(777, 8)
    alone = symbols_of(passage, 16)
    inside = symbols_of(before + passage + letters(900, 9), 16)
    last = len(passage) - 16
    found = {place - len(before): symbol for place, symbol in inside.items()}
    expected = {place: symbol for place, symbol in found.items() if 0 <= place <= last}
    # The first symbol may equal its neighbour before the passage, which drops it.
    first = min(alone)
    assert {place: symbol for place, symbol in alone.items() if place != first} == {
        place: symbol for place, symbol in expected.items() if place != first
    }


def test_an_edit_changes_only_windows_that_touch_it() -> None:
    data = bytearray(letters(5000, 3))
    before = symbols_of(bytes(data), 8)
    data[2500] = ord("#")
    after = symbols_of(bytes(data), 8)
    untouched = [place for place in before.keys() | after.keys() if not 2485 <= place <= 2500]
    changed = [place for place in untouched if before.get(place) != after.get(place)]
    # One symbol behind the edit may be dropped or restored, because a symbol equal to its neighbour is dropped.
    assert len(changed) <= 1
    assert before != after


@pytest.mark.parametrize("size", [100_000, 300_000])
def test_there_are_never_too_many_symbols(size: int) -> None:
    for rules, most in ((STANDARD, 2048), (COMPACT, 1024)):
        signature = signed(letters(size), rules)
        seen = view(signature, signature.rate, 16)
        assert most // 3 < seen.symbols.size <= most


@pytest.mark.parametrize("data", [b"v" * 5000, b"abc" * 3000])
def test_short_periods_leave_few_symbols(data: bytes) -> None:
    assert len(signed(data, STANDARD).ld) <= 4 * 2048
    assert len(signed(b"v" * 5000, STANDARD).ld) <= 4


@pytest.mark.parametrize("size", [0, 1, 15])
def test_a_text_below_16_bytes_has_no_symbols(size: int) -> None:
    signature = signed(letters(size), STANDARD)
    assert (signature.rate, signature.ld) == (8, b"")


@pytest.mark.parametrize(
    ("size", "rate"), [(4095, 8), (4096, 16), (16_383, 16), (16_384, 32), (65_535, 32), (65_536, 64)]
)
def test_the_rate_grows_with_the_length(size: int, rate: int) -> None:
    # This text has too few symbols to double the rate.
    data = b"v" * (size - 500) + letters(500, 4)
    assert signed(data, STANDARD).rate == rate
    assert signed(data, COMPACT).rate == 2 * rate


@pytest.mark.parametrize("rate", [8, 32, 64])
def test_the_density_is_one_in_the_rate(rate: int) -> None:
    size = 400_000
    kept = view(signed(letters(size, 5), at_rate(rate)), rate, 19).symbols.size
    assert abs(kept - size / rate) <= 4 * (size / rate) ** 0.5


def test_positions_are_where_the_windows_stand() -> None:
    data = letters(40_000, 6)
    seen = view(signed(data, at_rate(64)), 64, 19)
    for place, symbol in zip(seen.positions.tolist(), seen.symbols.tolist(), strict=True):
        assert symbols_of(data[place : place + 16], 64) == {0: symbol}


@pytest.mark.parametrize("rules", [STANDARD, COMPACT], ids=["standard", "compact"])
@pytest.mark.parametrize("size", [2_000, 300_000])
def test_what_an_index_keeps_is_seen_alike_at_every_rate(rules: LdRules, size: int) -> None:
    signature = signed(letters(size, 5), rules)
    whole = LdSignature(signature.rate, signature.ld, signature.gaps)
    kept = LdSignature(signature.rate, kept_symbols(whole), signature.gaps)
    assert kept.ld != whole.ld
    for doublings in range(8):
        bits = compared_bits(whole, doublings)
        assert same(view(kept, whole.rate << doublings, bits), view(whole, whole.rate << doublings, bits))
