"""The normal form of any text is what the page says, and any bytes make a signature or are refused."""

from collections.abc import Iterator
from datetime import UTC, datetime
from operator import eq

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from nearstream.schemas.documents.document import Document
from nearstream.schemas.documents.signature import Signature
from nearstream.schemas.topics.codec import InvalidMessageError, decode_signature, encode_signature
from nearstream.streams.fingerprints.normalize import normalize
from nearstream.streams.signing.scheme import Scheme, band_values, hit_probability, preset
from nearstream.streams.signing.signer import Signer
from tests.reference.ld import view
from tests.reference.normal_form import normalized
from tests.reference.signing import PUBLIC, signers
from tests.support.texts import RANGES, mixed_text

SEEN = datetime(2026, 3, 2, tzinfo=UTC)
USUAL = Scheme("usual", PUBLIC.fingerprint)  # the numbers that no preset changes: runs of 32 windows of 8 words
SIGNER = Signer(USUAL, PUBLIC)
SLOT_BYTES = USUAL.sketch.bits // 8
TRIALS = 1500


def signed_pairs(size: int, common: int, trials: int) -> Iterator[tuple[Signature, Signature]]:
    """Yield signatures of two texts of `size` shingles each, of which `common` ones are in both."""
    random = np.random.default_rng(size)
    for _ in range(trials):
        words = random.integers(10**9, size=2 * size - common + 4).astype(str).tolist()
        one, other = (" ".join(part) for part in (words[: size + 4], words[size - common :]))
        yield tuple(SIGNER.sign(Document(id="x", text=text, observed_at=SEEN)) for text in (one, other))  # type: ignore[misc]


def slots(signature: Signature) -> list[bytes]:
    """Return the slots of a sketch, each a band of one row."""
    return band_values(signature.sketch, SLOT_BYTES, 128, 1)


@pytest.mark.parametrize(("size", "common"), [(20, 18), (50, 44), (200, 178), (2000, 1778)])
def test_the_error_of_a_sketch_is_at_most_that_of_k_permutations(size: int, common: int) -> None:
    true = common / (2 * size - common)
    equal = [sum(map(eq, *map(slots, pair))) for pair in signed_pairs(size, common, TRIALS)]
    theirs = np.random.default_rng(size).binomial(128, true, 200_000) / 128
    assert np.abs(np.array(equal) / 128 - true).mean() <= 1.05 * np.abs(theirs - true).mean()


@pytest.mark.parametrize(("common", "size"), [(400, 700), (500, 750), (600, 800), (700, 850), (16, 18)])
def test_the_hit_curve_of_25_bands_of_5_rows_follows_the_formula(common: int, size: int) -> None:
    expected = hit_probability(common / (2 * size - common), 25, 5)
    bands = [[band_values(each.sketch, SLOT_BYTES, 25, 5) for each in pair]
             for pair in signed_pairs(size, common, 600)]  # fmt: skip
    hits = sum(any(map(eq, *pair)) for pair in bands) / len(bands)
    assert abs(hits - expected) <= 4 * (expected * (1 - expected) / len(bands)) ** 0.5


@pytest.mark.parametrize("signer", [SIGNER, signers()[1]], ids=["usual", "fine"])
@pytest.mark.parametrize("seed", range(20))
def test_a_shared_passage_of_39_words_shares_an_anchor(signer: Signer, seed: int) -> None:
    random = np.random.default_rng(seed)
    *parts, passage = [random.integers(10**6, size=size).astype(str) for size in (13 * seed, 200, 300, 7 * seed, 39)]
    texts = [" ".join([*before, *passage, *after]) for before, after in (parts[:2], parts[2:])]
    signed = [signer.sign(Document(id="x", text=text, observed_at=SEEN)) for text in texts]
    assert set.intersection(*(set(band_values(each.anchors, 8, len(each.anchors) // 8, 1)) for each in signed))


@pytest.mark.parametrize("range_", RANGES, ids=lambda each: f"{each[0]:X}")
def test_normal_forms_equal_the_reference_on_every_listed_range(range_: tuple[int, int]) -> None:
    for seed in range(20):
        for ranges in ([range_], [range_, RANGES[0]], [range_, (0x300, 0x36F)]):
            text = mixed_text(seed, ranges, 60)
            assert normalize(text).data.decode() == normalized(text)


@settings(max_examples=300)
@given(
    label=st.sampled_from(["fine", "compact"]),
    ld=st.binary(max_size=40),
    gaps=st.binary(max_size=20),
    anchors=st.one_of(st.binary(max_size=40), st.just(b"")),
    rate=st.one_of(st.integers(0, 2**50), st.sampled_from([8, 16, 32])),
    n_bytes=st.integers(0, 2**40),
)
def test_any_bytes_make_a_readable_signature_or_an_invalid_message(
    label: str, ld: bytes, gaps: bytes, anchors: bytes, rate: int, n_bytes: int
) -> None:
    changed = replace(
        signers(label)[1].sign(Document(id="x", text="a b c", observed_at=SEEN)),
        ld=ld,
        gaps=gaps,
        anchors=anchors,
        rate=rate,
        n_bytes=n_bytes,
    )
    signature = decode_signature(encode_signature(changed))
    try:
        preset(label, PUBLIC).check(signature)
    except InvalidMessageError:
        return
    seen = view(signature, 2 * rate, 9)
    assert seen.symbols.size == seen.positions.size
    assert bool(np.all(seen.positions <= n_bytes))
