"""Scheme parameters and positions that are out of range are refused."""

from dataclasses import replace

import msgspec
import numpy as np
import pytest

from nearstream.schemas.documents.document import EPOCH, Document
from nearstream.schemas.topics.codec import InvalidMessageError
from nearstream.streams.fingerprints.hashing import HashKey
from nearstream.streams.fingerprints.parameters import AnchorRules, LdRules, NoiseRules, TextRules
from nearstream.streams.signing.scheme import Scheme, preset
from nearstream.streams.signing.signer import Signer
from tests.reference.ld import pack_varints

KEY = HashKey.public()
STANDARD = preset("noise", KEY)
COMPACT = preset("compact", KEY)
TEXT = " ".join(map(str, range(1000)))


@pytest.mark.parametrize(
    "scheme",
    [
        replace(STANDARD, ld=LdRules(rates=())),
        replace(STANDARD, ld=LdRules(rates=(3, 6, 12, 24))),
        replace(STANDARD, ld=LdRules(gap_bits=12)),
        replace(STANDARD, ld=LdRules(max_symbols=0)),
        replace(COMPACT, ld=replace(COMPACT.ld, gap_steps=0)),
        replace(STANDARD, anchors=AnchorRules(run=0)),
        replace(STANDARD, anchors=AnchorRules(spaceless_factor=0)),
        replace(STANDARD, anchors=AnchorRules(run=4096)),
        replace(STANDARD, anchors=AnchorRules(words=65)),
        replace(STANDARD, text=TextRules(word_bytes=1)),
        replace(STANDARD, text=TextRules(mark_run=65)),
        replace(STANDARD, text=TextRules(spaceless_share=4097)),
        replace(STANDARD, ld=LdRules(rates=(1 << 33,), lengths=())),
        replace(STANDARD, noise=NoiseRules(rate=1 << 33)),
    ],
)
def test_a_scheme_that_cannot_be_signed_is_refused(scheme: Scheme) -> None:
    with pytest.raises(ValueError, match="a number of the scheme is out of range"):
        Signer(scheme, KEY)


@pytest.mark.parametrize(
    "text", [TextRules(mark_run=64), TextRules(spaceless_share=4096), TextRules(spaceless_share=0)]
)
def test_the_largest_numbers_that_are_allowed_can_be_signed(text: TextRules) -> None:
    scheme = replace(STANDARD, text=text, ld=LdRules(rates=(1 << 32,), lengths=()))
    signer = Signer(scheme, KEY)
    assert signer.sign(Document(id="a", text=TEXT, observed_at=EPOCH)).words == 1000


@pytest.mark.parametrize("gap", [1 << 26, 1 << 27, 1 << 41])
def test_gaps_that_would_come_out_small_are_outside_the_text(gap: int) -> None:
    signed = Signer(COMPACT, KEY).sign(Document(id="a", text=TEXT, observed_at=EPOCH))
    forged = msgspec.structs.replace(
        signed, rate=1 << 30, ld=np.arange(2, dtype="<u2").tobytes(), gaps=pack_varints(np.array([gap, gap]))
    )
    COMPACT.check(signed)
    with pytest.raises(InvalidMessageError, match="gaps"):
        COMPACT.check(forged)
