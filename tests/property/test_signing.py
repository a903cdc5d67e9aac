"""Signing equals its slow reference on any text."""

from datetime import UTC, datetime
from functools import cache
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from nearstream.schemas.documents.document import Document
from nearstream.schemas.documents.signature import Signature
from nearstream.schemas.topics.codec import InvalidMessageError, decode_signature, encode_signature
from nearstream.streams.fingerprints.hashing import HashKey
from nearstream.streams.fingerprints.ld import view
from nearstream.streams.fingerprints.ld_encoding import pack_varints, pack_words, unpack_varints, unpack_words
from nearstream.streams.fingerprints.minhash import resemblance, sketch
from nearstream.streams.fingerprints.normalize import normalize
from nearstream.streams.fingerprints.polynomials import distinct
from nearstream.streams.fingerprints.ragged import RaggedRows
from nearstream.streams.signing.scheme import preset
from tests.support.implementations import each_implementation, signer_of
from tests.support.signing_reference import normalize_reference, sign_reference, sketch_reference, spaceless_reference
from tests.support.texts import (
    RANGES,
    any_text,
    mixed_text,
    signed_text,
)

KEY = HashKey.public()
signer = cache(signer_of)


def signed(text: str, label: str = "standard", implementation: str = "numpy") -> Signature:
    return signer(implementation, label).sign(Document(id="x", text=text, observed_at=datetime(2026, 3, 2, tzinfo=UTC)))


def measured(signature: Signature, names: dict[str, object]) -> dict[str, object]:
    return {name: getattr(signature, name) for name in names}


@settings(max_examples=300)
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
@settings(max_examples=150)
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


@settings(max_examples=60)
@given(st.lists(st.integers(0, 2**64 - 1), max_size=40), st.randoms(use_true_random=False))
def test_order_and_repetition_do_not_matter(features: list[int], random: Random) -> None:
    shuffled = features * 2
    random.shuffle(shuffled)
    rules = preset("standard", KEY).sketch
    slots = sketch(distinct(np.array(shuffled, dtype=np.uint64)), rules)
    assert slots == b"".join(each.to_bytes(4, "little") for each in sketch_reference(set(features)))


@settings(max_examples=200)
@given(st.lists(st.tuples(st.integers(0, 2**19 - 1), st.one_of(st.integers(0, 9000), st.integers(8190, 2**32 - 1)))))
def test_gaps_add_up_to_positions_escapes_included(pairs: list[tuple[int, int]]) -> None:
    symbols = np.array([symbol for symbol, _ in pairs], dtype=np.uint32)
    gaps = np.array([gap for _, gap in pairs], dtype=np.int64)
    (packed,) = pack_words(symbols, RaggedRows.between(gaps, [0, gaps.size]))
    unpacked = unpack_words(packed)
    assert [each.tolist() for each in unpacked] == [symbols.tolist(), gaps.tolist()]
    assert unpack_varints(pack_varints(gaps)).tolist() == gaps.tolist()


@settings(max_examples=300)
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


@settings(max_examples=60)
@given(signed_text, signed_text)
def test_resemblance_is_the_same_whole_and_kept_in_either_order(first: str, second: str) -> None:
    scheme = preset("standard", KEY)
    a, b = signed(first), signed(second)
    expected = resemblance(a, b)
    assert 0.0 <= expected <= 1.0
    assert resemblance(b, a) == resemblance(scheme.kept(a), b) == resemblance(a, scheme.kept(b)) == expected
    assert resemblance(a, a) == resemblance(a, scheme.kept(a)) == 1.0
