"""Names, keys and checks of a scheme."""

from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass, replace
from datetime import UTC, datetime
from typing import Any

import msgspec
import numpy as np
import pytest
from msgspec.structs import replace as replace_fields

from nearstream.schemas.documents.document import EPOCH, Document
from nearstream.schemas.documents.signature import Signature
from nearstream.schemas.topics.codec import InvalidMessageError
from nearstream.schemas.topics.dead_letter import Reason
from nearstream.streams.fingerprints.hashing import HashKey
from nearstream.streams.fingerprints.parameters import (
    AnchorRules,
    BandRules,
    LdRules,
    SketchRules,
    TextRules,
)
from nearstream.streams.signing.scheme import LABELS, Keys, Scheme, preset
from nearstream.streams.signing.signer import Signer
from tests.reference.ld import pack_varints

KEY = HashKey.public()
OTHER_KEY = HashKey.from_secret(b"another secret of thirty-two bytes")
FINE, MAIL, COMPACT, NOISE = ALL = tuple(preset(label, KEY) for label in LABELS)
FROZEN = ["096ad3b0aa3607d0", "1db4b1662a214dc6", "bedcbce4093076d2", "154a7a8cd2cadcb7"]
LONG = " ".join(f"word{number * number % 1009}" for number in range(900))


def signed(text: str, scheme: Scheme = NOISE, **more: str) -> Signature:
    document = Document(id="x", text=text, observed_at=datetime(2026, 3, 2, tzinfo=UTC), **more)
    return Signer(scheme, KEY).sign(document)


def all_keys(keys: Keys) -> set[bytes]:
    return {keys.digest, *([keys.lineage] if keys.lineage else []), *keys.bands, *keys.anchors}


def changed(value: object) -> object:
    if isinstance(value, int):
        return value + 2
    return (*value, 3) if isinstance(value, tuple) else "00000000"


def variants(scheme: Scheme) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the scheme with one field changed, for each field except the label."""
    for each in fields(scheme):
        value = getattr(scheme, each.name)
        if is_dataclass(value):
            for inner in fields(value):
                if (each.name, inner.name) != ("sketch", "bits"):
                    group = replace(value, **{inner.name: changed(getattr(value, inner.name))})
                    yield f"{each.name}.{inner.name}", {each.name: group}
        elif each.name != "label":
            yield each.name, {each.name: changed(value)}


def test_changing_any_field_changes_the_name() -> None:
    scheme = replace(FINE, noise=NOISE.noise, bands=BandRules(bands=10, rows=5))
    names = {scheme.name}
    for field, change in variants(scheme):
        name = replace(scheme, **change).name
        assert name not in names, field
        names.add(name)
    assert replace(scheme, sketch=replace(scheme.sketch, bits=16)).name not in names


def test_the_label_is_a_nickname_in_front_of_the_name() -> None:
    assert replace(FINE, label="mine").name == FINE.name.replace("fine", "mine")
    assert FINE.name.startswith("fine-1-u14-k0d3e89c8-")
    assert len({scheme.name.partition("-1-")[2] for scheme in ALL}) == len(ALL)


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda: replace(FINE, bands=BandRules(26, 5)), "slots"),
        (lambda: replace(FINE, bands=BandRules(0, 5)), "slots"),
        (lambda: replace(NOISE, sketch=SketchRules(bits=4)), "bits"),
        (lambda: preset("huge", KEY), "fine, mail, compact, noise"),
        (lambda: NOISE.keys(signed("…"), KEY), "empty"),
        (lambda: NOISE.keys(signed(LONG), OTHER_KEY), "0d3e89c8"),
        (lambda: NOISE.keys(signed(LONG, COMPACT), KEY), "signature of"),
        (lambda: NOISE.keys(NOISE.kept(signed(LONG)), KEY), "sketch"),
    ],
    ids=["bands", "no bands", "bits", "label", "empty text", "other key", "other scheme", "kept signature"],
)
def test_a_scheme_or_keys_that_cannot_be_are_refused(make: Callable[[], object], told: str) -> None:
    with pytest.raises(ValueError, match=told):
        make()


@pytest.mark.parametrize("scheme", ALL, ids=lambda scheme: scheme.label)
def test_keys_are_8_bytes_each_once(scheme: Scheme) -> None:
    signature = signed(LONG, scheme, lineage="u")
    keys = scheme.keys(signature, KEY)
    assert len(keys.bands) == scheme.bands.bands
    assert len(keys.anchors) == len(signature.anchors) // 8
    assert {len(each) for each in all_keys(keys)} == {8}
    assert len(all_keys(keys)) == 2 + len(keys.bands) + len(keys.anchors)


def test_equal_values_of_two_kinds_or_two_bands_give_two_keys() -> None:
    equal = replace_fields(signed(LONG), lineage="0123456789abcdef", digest=b"0123456789abcdef", sketch=bytes(512))
    keys = NOISE.keys(equal, KEY)
    assert keys.lineage != keys.digest
    assert len(set(keys.bands)) == 25
    assert NOISE.keys(signed(LONG), KEY).lineage is None


def test_the_keys_of_one_signature_are_frozen() -> None:
    keys = NOISE.keys(signed("The quick brown fox jumps over the lazy dog, twice.", lineage="u"), KEY)
    assert [keys.digest.hex(), (keys.lineage or b"").hex(), keys.bands[0].hex(), keys.anchors[0].hex()] == FROZEN


@pytest.mark.parametrize(("characters", "bands"), [(13, 0), (14, 25)])
def test_a_spaceless_text_needs_40_bytes_for_bands(characters: int, bands: int) -> None:
    keys = NOISE.keys(signed("日本語の文章は空白なしで書かれる"[:characters]), KEY)
    assert (len(keys.bands), bool(keys.anchors)) == (bands, bands > 0)


def test_a_text_needs_eight_words_for_bands_and_anchors() -> None:
    short, long = (NOISE.keys(signed(" ".join(LONG.split()[:count])), KEY) for count in (7, 8))
    assert (short.bands, short.anchors) == ((), ())
    assert len(long.bands) == 25
    assert long.anchors


@pytest.mark.parametrize("scheme", ALL, ids=lambda scheme: scheme.label)
def test_kept_leaves_what_estimates_read(scheme: Scheme) -> None:
    signature = signed(LONG, scheme)
    kept = scheme.kept(signature)
    low = [slot & 15 for slot in signature.sketch[:: scheme.sketch.bits // 8]]
    assert [half for two in kept.sketch for half in (two & 15, two >> 4)] == low
    assert (len(kept.ld), kept.raw_digest, kept.anchors) == (len(signature.ld), signature.raw_digest[:8], b"")
    told = {"sketch": signature.sketch, "ld": signature.ld, "anchors": signature.anchors}
    assert replace_fields(kept, raw_digest=signature.raw_digest, **told) == signature
    assert scheme.kept(kept) == kept


@pytest.mark.parametrize("scheme", ALL, ids=lambda scheme: scheme.label)
@pytest.mark.parametrize("text", ["", "a", LONG, "v" * 9000 + LONG, "日本語の" * 30, LONG * 20])
def test_what_is_signed_passes_the_check(scheme: Scheme, text: str) -> None:
    scheme.check(signed(text, scheme))


def ascending(size: int) -> bytes:
    return b"".join(number.to_bytes(8, "little") for number in range(size))


FAULTS: dict[str, tuple[Scheme, dict[str, Any]]] = {
    "another scheme": (NOISE, {"scheme": COMPACT.name}),
    "a short digest": (NOISE, {"digest": b"1"}),
    "a sketch as the index keeps it": (NOISE, {"sketch": bytes(128)}),
    "a wide sketch": (COMPACT, {"sketch": bytes(512)}),
    "half a word": (NOISE, {"ld": b"123456"}),
    "a rate that is no power of two": (NOISE, {"rate": 24}),
    "a rate of zero": (NOISE, {"rate": 0}),
    "a rate finer than the length allows": (NOISE, {"rate": 4}),
    "a rate beyond all texts": (NOISE, {"rate": 1 << 60}),
    "an escape without its gap": (NOISE, {"ld": b"\xff" * 4}),
    "too many symbols": (NOISE, {"ld": b"\x01\x00\x00\x00" * 2049, "n_bytes": 10**4, "rate": 16}),
    "a position past the end": (NOISE, {"n_bytes": 2000}),
    "an escaped position past the end": (NOISE, {"ld": b"\xff" * 8}),
    "gaps where words hold them": (NOISE, {"gaps": b"\x01"}),
    "seven bytes of an anchor": (NOISE, {"anchors": b"1234567"}),
    "unsorted anchors": (NOISE, {"anchors": b"22222222" + b"11111111"}),
    "an anchor twice": (NOISE, {"anchors": b"11111111" * 2}),
    "too many anchors": (COMPACT, {"anchors": ascending(513)}),
    "too many anchors and sampled windows": (NOISE, {"anchors": ascending(561)}),
    "symbols without gaps": (COMPACT, {"gaps": b""}),
    "an unfinished gap": (COMPACT, {"gaps": b"\x80"}),
    "an endless gap": (COMPACT, {"gaps": b"\x80" * 7 + b"\x01", "ld": b"ab"}),
    "too many short symbols": (COMPACT, {"gaps": b"\x01" * 1025, "ld": bytes(2050), "n_bytes": 10**5, "rate": 128}),
    "a floor past the end": (COMPACT, {"n_bytes": 2000}),
    "no characters": (NOISE, {"characters": 0}),
    "more characters than bytes": (NOISE, {"characters": 10**5}),
    "more bytes than characters take": (NOISE, {"characters": 100}),
    "more bytes than any text has": (NOISE, {"n_bytes": 1 << 63, "characters": 1 << 62, "rate": 64}),
    "no words": (NOISE, {"words": 0}),
    "more words than characters": (NOISE, {"words": 10**5}),
    "no shingles": (NOISE, {"shingles": 0}),
    "more shingles than characters": (NOISE, {"shingles": 10**5}),
    "words without bytes": (NOISE, {"n_bytes": 0, "ld": b""}),
}


@pytest.mark.parametrize("name", FAULTS)
def test_the_check_refuses(name: str) -> None:
    scheme, change = FAULTS[name]
    with pytest.raises(InvalidMessageError) as caught:
        scheme.check(replace_fields(signed(LONG, scheme), **change))
    error = caught.value
    assert error.reason is (Reason.OTHER_SCHEME if "scheme" in change else Reason.INVALID_SIGNATURE)
    assert "expected" in error.detail or "scheme" in change


def test_short_texts_with_one_word_changed_share_sampled_windows() -> None:
    one = "the nightly backup of the accounts database on node seven failed after two hours"
    other = one.replace("seven", "twelve")
    both = [FINE.keys(signed(text, FINE), KEY) for text in (one, other)]
    without = replace(FINE, sampled=None)
    plain = [without.keys(signed(text, without), KEY) for text in (one, other)]
    assert len(set(both[0].anchors) & set(both[1].anchors)) > 3
    assert not set(plain[0].anchors) & set(plain[1].anchors)


def test_long_texts_have_no_sampled_windows() -> None:
    long = " ".join(f"word{number}" for number in range(2_000))
    assert signed(long, FINE).anchors == signed(long, replace(FINE, sampled=None)).anchors


NUMBERS = " ".join(map(str, range(1000)))


@pytest.mark.parametrize(
    "scheme",
    [
        replace(NOISE, ld=LdRules(rates=())),
        replace(NOISE, ld=LdRules(gap_bits=12)),
        replace(NOISE, ld=LdRules(max_symbols=0)),
        replace(COMPACT, ld=replace(COMPACT.ld, gap_steps=0)),
        replace(NOISE, anchors=AnchorRules(run=0)),
        replace(NOISE, anchors=AnchorRules(words=65)),
        replace(NOISE, text=TextRules(word_bytes=1)),
        replace(NOISE, text=TextRules(mark_run=65)),
        replace(NOISE, ld=LdRules(rates=(1 << 33,), lengths=())),
    ],
)
def test_a_scheme_that_cannot_be_signed_is_refused(scheme: Scheme) -> None:
    with pytest.raises(ValueError, match="a number of the scheme is out of range"):
        Signer(scheme, KEY)


@pytest.mark.parametrize(
    "text", [TextRules(mark_run=64), TextRules(spaceless_share=4096), TextRules(spaceless_share=0)]
)
def test_the_largest_numbers_that_are_allowed_can_be_signed(text: TextRules) -> None:
    scheme = replace(NOISE, text=text, ld=LdRules(rates=(1 << 32,), lengths=()))
    signer = Signer(scheme, KEY)
    assert signer.sign(Document(id="a", text=NUMBERS, observed_at=EPOCH)).words == 1000


@pytest.mark.parametrize("gap", [1 << 26, 1 << 27, 1 << 41])
def test_gaps_that_would_come_out_small_are_outside_the_text(gap: int) -> None:
    signed = Signer(COMPACT, KEY).sign(Document(id="a", text=NUMBERS, observed_at=EPOCH))
    forged = msgspec.structs.replace(
        signed, rate=1 << 30, ld=np.arange(2, dtype="<u2").tobytes(), gaps=pack_varints(np.array([gap, gap]))
    )
    COMPACT.check(signed)
    with pytest.raises(InvalidMessageError, match="gaps"):
        COMPACT.check(forged)
