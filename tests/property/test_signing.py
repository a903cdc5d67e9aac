"""The normal form of any text is what the page says, and any bytes make a signature or are refused."""

from datetime import UTC, datetime

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from nearstream.schemas.documents.document import Document
from nearstream.schemas.topics.codec import InvalidMessageError, decode_signature, encode_signature
from nearstream.streams.fingerprints.normalize import normalize
from nearstream.streams.signing.scheme import preset
from tests.reference.ld import view
from tests.reference.normal_form import normalized
from tests.reference.signing import PUBLIC, signers
from tests.support.texts import RANGES, mixed_text

SEEN = datetime(2026, 3, 2, tzinfo=UTC)


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
