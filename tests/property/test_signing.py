"""Signing against its slow reference, on any text."""

from datetime import UTC, datetime
from functools import cache
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from schemas.codec import InvalidMessageError, decode_signature, encode_signature
from schemas.document import Document
from schemas.signature import Signature
from streams.hashing import HashKey, distinct
from streams.ld import view
from streams.minhash import resemblance, sketch
from streams.normalize import normalize
from streams.packing import pack_varints, pack_words, unpack_varints, unpack_words
from streams.runs import Rows
from streams.scheme import preset
from tests.implementations import each_implementation, signer_of
from tests.property.signing_reference import (
    normalize_reference,
    sign_reference,
    sketch_reference,
    spaceless_reference,
)

KEY = HashKey.public()
signer = cache(signer_of)
RANGES = [
    (0x00, 0x7F), (0x80, 0x24F), (0x370, 0x3FF), (0x900, 0xDFF), (0xE00, 0xE7F), (0x1100, 0x11FF), (0x1D00, 0x2200),
    (0x3040, 0x30FF), (0x4E00, 0x9FFF), (0xAC00, 0xD7FF), (0xD800, 0xDFFF), (0xF900, 0xFFFF), (0x10000, 0x11000),
    (0x1D400, 0x1D7FF), (0x1F000, 0x1FFFF), (0x20000, 0x2A6DF), (0xE0000, 0xE01FF),
]  # fmt: skip
MARKS = ["\u0301", "\u0323", "\u3099", "\uff9e", "\u0345", "\u05b8", "\u0e48"]
any_character = st.one_of([st.integers(first, last).map(chr) for first, last in RANGES])
run_of_marks = st.lists(st.sampled_from(MARKS), min_size=25, max_size=40).map("".join)
any_text = st.lists(st.one_of(st.text(any_character, max_size=12), run_of_marks, st.just(" "))).map("".join)
short_words = st.lists(st.text(st.sampled_from("abé語z0"), max_size=5), max_size=60).map(" ".join)
repeated = st.builds(lambda text, times: text * times, st.text(any_character, max_size=8), st.integers(1, 60))
signed_text = st.one_of(any_text, short_words, repeated)


def signed(text: str, label: str = "standard", implementation: str = "numpy") -> Signature:
    return signer(implementation, label).sign(Document(id="x", text=text, observed_at=datetime(2026, 3, 2, tzinfo=UTC)))


def measured(signature: Signature, names: dict[str, object]) -> dict[str, object]:
    return {name: getattr(signature, name) for name in names}


def mixed_text(seed: int, ranges: list[tuple[int, int]], size: int = 400) -> str:
    random = Random(seed)
    return "".join(" " if random.random() < 0.1 else chr(random.randint(*random.choice(ranges))) for _ in range(size))


@settings(max_examples=300, deadline=None)
@given(any_text)
def test_any_text_has_the_normal_form_of_the_reference(text: str) -> None:
    form, expected = normalize(text), normalize_reference(text)
    assert form.data.tobytes().decode() == expected
    assert (form.characters, form.spaceless) == (len(expected), spaceless_reference(expected))


@pytest.mark.parametrize("range_", RANGES, ids=lambda each: f"{each[0]:X}")
def test_the_fast_paths_equal_the_reference_on_every_listed_range(range_: tuple[int, int]) -> None:
    for seed in range(20):
        for ranges in ([range_], [range_, RANGES[0]], [range_, (0x300, 0x36F)]):
            text = mixed_text(seed, ranges, 60)
            assert normalize(text).data.tobytes().decode() == normalize_reference(text)


@each_implementation
@settings(max_examples=150, deadline=None)
@given(signed_text, st.sampled_from(["standard", "compact"]))
def test_any_text_has_the_signature_of_the_reference(implementation: str, text: str, label: str) -> None:
    expected = sign_reference(text, preset(label, KEY), KEY)
    assert measured(signed(text, label, implementation), expected) == expected


@each_implementation
@pytest.mark.parametrize("label", ["standard", "compact"])
def test_texts_of_every_length_to_200_have_the_signature_of_the_reference(label: str, implementation: str) -> None:
    base = "the 7 ducks swam over été " + "語の文" * 12 + " and " + "x" * 150
    for size in range(201):
        text = (base * 2)[size % 7 : size % 7 + size]
        expected = sign_reference(text, preset(label, KEY), KEY)
        assert measured(signed(text, label, implementation), expected) == expected


@each_implementation
@pytest.mark.parametrize("label", ["standard", "compact"])
@pytest.mark.parametrize(
    "text",
    [
        "v" * 9000 + " ".join(map(str, range(900))),
        " ".join("abcdefgh"[i % 7] for i in range(3000)),
        mixed_text(1, [(0x61, 0x7A)], 20_000),
        mixed_text(2, [(0x4E00, 0x9FFF)], 3000),
        mixed_text(3, RANGES, 3000),
    ],
    ids=["escape", "one-letter words", "letters", "han", "all ranges"],
)
def test_long_texts_have_the_signature_of_the_reference(text: str, label: str, implementation: str) -> None:
    expected = sign_reference(text, preset(label, KEY), KEY)
    assert measured(signed(text, label, implementation), expected) == expected


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, 2**64 - 1), max_size=40), st.randoms(use_true_random=False))
def test_order_and_repetition_do_not_matter(features: list[int], random: Random) -> None:
    shuffled = features * 2
    random.shuffle(shuffled)
    rules = preset("standard", KEY).sketch
    slots = sketch(distinct(np.array(shuffled, dtype=np.uint64)), rules)
    assert slots == b"".join(each.to_bytes(4, "little") for each in sketch_reference(set(features)))


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 2**19 - 1), st.one_of(st.integers(0, 9000), st.integers(8190, 2**32 - 1)))))
def test_gaps_add_up_to_positions_escapes_included(pairs: list[tuple[int, int]]) -> None:
    symbols = np.array([symbol for symbol, _ in pairs], dtype=np.uint32)
    gaps = np.array([gap for _, gap in pairs], dtype=np.int64)
    (packed,) = pack_words(symbols, Rows.between(gaps, [0, gaps.size]))
    unpacked = unpack_words(packed)
    assert [each.tolist() for each in unpacked] == [symbols.tolist(), gaps.tolist()]
    assert unpack_varints(pack_varints(gaps)).tolist() == gaps.tolist()


@settings(max_examples=300, deadline=None)
@given(
    label=st.sampled_from(["standard", "compact"]),
    ld=st.binary(max_size=40),
    gaps=st.binary(max_size=20),
    anchors=st.one_of(st.binary(max_size=40), st.just(b"")),
    rate=st.one_of(st.integers(0, 2**50), st.sampled_from([8, 16, 32])),
    n_bytes=st.integers(0, 2**40),
)
def test_any_bytes_make_a_readable_signature_or_an_invalid_message(
    label: str, ld: bytes, gaps: bytes, anchors: bytes, rate: int, n_bytes: int
) -> None:
    changed = replace(signed("a b c", label), ld=ld, gaps=gaps, anchors=anchors, rate=rate, n_bytes=n_bytes)
    signature = decode_signature(encode_signature(changed))
    try:
        preset(label, KEY).check(signature)
    except InvalidMessageError:
        return
    seen = view(signature, 2 * rate, 9)
    assert seen.symbols.size == seen.positions.size
    assert bool(np.all(seen.positions <= n_bytes))


@settings(max_examples=60, deadline=None)
@given(signed_text, signed_text)
def test_resemblance_is_the_same_whole_and_kept_in_either_order(first: str, second: str) -> None:
    scheme = preset("standard", KEY)
    a, b = signed(first), signed(second)
    expected = resemblance(a, b)
    assert 0.0 <= expected <= 1.0
    assert resemblance(b, a) == resemblance(scheme.kept(a), b) == resemblance(a, scheme.kept(b)) == expected
    assert resemblance(a, a) == resemblance(a, scheme.kept(a)) == 1.0
