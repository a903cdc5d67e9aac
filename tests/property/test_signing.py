"""The normal form of any text is what the page says, and any bytes make a signature or are refused."""

import unicodedata
from bisect import bisect_right
from datetime import UTC, datetime

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from nearstream.schemas.documents.document import Document
from nearstream.schemas.topics.codec import InvalidMessageError, decode_signature, encode_signature
from nearstream.streams.fingerprints.normalize import normalize
from nearstream.streams.fingerprints.unicode_tables import NEWER
from nearstream.streams.signing.scheme import preset
from tests.reference.ld import view
from tests.reference.signing import PUBLIC, signers
from tests.support.texts import RANGES, any_text, mixed_text

SEEN = datetime(2026, 3, 2, tzinfo=UTC)
_STARTS = [first for first, _ in NEWER]
_SPACELESS = (
    (0x0E00, 0x0EFF), (0x1000, 0x109F), (0x1780, 0x17FF), (0x3040, 0x30FF), (0x31F0, 0x31FF),
    (0x3400, 0x4DBF), (0x4E00, 0x9FFF), (0xF900, 0xFAFF), (0x20000, 0x3FFFF),
)  # fmt: skip


def is_newer(character: str) -> bool:
    place = bisect_right(_STARTS, ord(character)) - 1
    return place >= 0 and ord(character) <= NEWER[place][1]


def _category(character: str) -> str:
    return unicodedata.category(character)[0]


def normalize_reference(text: str) -> str:
    out, run = [], 0
    for c in text:
        kept = "\ufffd" if "\ud800" <= c <= "\udfff" else " " if is_newer(c) else c
        run = run + 1 if _category(kept) == "M" or kept in "\uff9e\uff9f" else 0
        out.append(" " if run > 30 else kept)
    lowered = [c.lower() if len(c.lower()) == 1 else c for c in unicodedata.normalize("NFKC", "".join(out))]
    words, carried = [], False
    for c in lowered:
        kind = _category(c)
        if kind != "M":
            carried = kind in "LN"
        words.append(c if carried else " ")
    return " ".join("".join(words).split())


def spaceless_reference(form: str) -> bool:
    letters = [ord(c) for c in form if c != " "]
    inside = sum(any(first <= c <= last for first, last in _SPACELESS) for c in letters)
    return bool(letters) and 5 * inside >= len(letters)


@settings(max_examples=300)
@given(any_text)
def test_any_text_has_the_normal_form_of_the_reference(text: str) -> None:
    form, expected = normalize(text), normalize_reference(text)
    assert form.data.decode() == expected
    assert (form.characters, form.spaceless) == (len(expected), spaceless_reference(expected))


@pytest.mark.parametrize("range_", RANGES, ids=lambda each: f"{each[0]:X}")
def test_normal_forms_equal_the_reference_on_every_listed_range(range_: tuple[int, int]) -> None:
    for seed in range(20):
        for ranges in ([range_], [range_, RANGES[0]], [range_, (0x300, 0x36F)]):
            text = mixed_text(seed, ranges, 60)
            assert normalize(text).data.decode() == normalize_reference(text)


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
