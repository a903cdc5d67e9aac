"""Names, keys and checks of a scheme."""

from collections.abc import Iterator
from dataclasses import fields, is_dataclass, replace
from datetime import UTC, datetime
from typing import Any

import pytest
from msgspec.structs import replace as replace_fields

from nearstream.schemas.documents.document import Document
from nearstream.schemas.documents.signature import Signature
from nearstream.schemas.topics.codec import InvalidMessageError
from nearstream.schemas.topics.dead_letter import Reason
from nearstream.streams.fingerprints.hashing import HashKey
from nearstream.streams.fingerprints.parameters import BandRules, SampledRules, SketchRules, TextRules
from nearstream.streams.signing.scheme import LABELS, Keys, Scheme, preset
from nearstream.streams.signing.signer import Signer

KEY = HashKey.public()
OTHER_KEY = HashKey.from_secret(b"another secret of thirty-two bytes")
STANDARD, COMPACT, BANDS_ONLY, DENSE, LETTERS, FINE, NOISE, MAIL = (preset(label, KEY) for label in LABELS)
ALL = (STANDARD, COMPACT, BANDS_ONLY, DENSE, LETTERS, FINE, NOISE, MAIL)
FROZEN = ["aaefd45c661d4cb7", "551439e544c0ac66", "0f4798284b2237a8", "7ab3ed63feb91dfb"]
LONG = " ".join(f"word{number * number % 1009}" for number in range(900))


def signed(text: str, scheme: Scheme = STANDARD, **more: str) -> Signature:
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


@pytest.mark.parametrize("scheme", ALL, ids=lambda scheme: scheme.label)
def test_changing_any_field_changes_the_name(scheme: Scheme) -> None:
    scheme = replace(scheme, bands=BandRules(bands=10, rows=5))
    names = {scheme.name}
    for field, change in variants(scheme):
        name = replace(scheme, **change).name
        assert name not in names, field
        names.add(name)
    assert replace(scheme, sketch=replace(scheme.sketch, bits=16)).name not in names


def test_the_label_is_a_nickname_in_front_of_the_name() -> None:
    renamed = replace(STANDARD, label="mine").name
    assert renamed == STANDARD.name.replace("standard", "mine")
    assert STANDARD.name.startswith("standard-1-u14-k0d3e89c8-")


def test_two_presets_never_have_one_name() -> None:
    assert len({scheme.name.partition("-1-")[2] for scheme in ALL}) == len(ALL)


def test_bands_and_rows_replace_those_of_the_preset() -> None:
    scheme = preset("standard", KEY, bands=42, rows=3)
    assert (scheme.bands.bands, scheme.bands.rows) == (42, 3)
    assert len(scheme.keys(signed(LONG, scheme), KEY).bands) == 42
    assert preset("standard", KEY, bands=10).bands.rows == 5


@pytest.mark.parametrize(("bands", "rows"), [(26, 5), (1, 129), (-1, 5)])
def test_more_bands_than_slots_are_refused(bands: int, rows: int) -> None:
    with pytest.raises(ValueError, match="slots"):
        preset("standard", KEY, bands=bands, rows=rows)


def test_zero_bands_are_refused() -> None:
    with pytest.raises(ValueError, match="slots"):
        preset("standard", KEY, bands=0)


def test_few_bits_with_bands_are_refused() -> None:
    with pytest.raises(ValueError, match="bits"):
        replace(STANDARD, sketch=SketchRules(bits=4))


def test_an_unknown_label_is_refused_with_those_known() -> None:
    with pytest.raises(ValueError, match="standard, compact, bands-only, dense, letters, fine, noise, mail"):
        preset("huge", KEY)


@pytest.mark.parametrize("scheme", [STANDARD, COMPACT, BANDS_ONLY], ids=lambda scheme: scheme.label)
def test_keys_are_8_bytes_each_once(scheme: Scheme) -> None:
    signature = signed(LONG, scheme, lineage="u")
    keys = scheme.keys(signature, KEY)
    assert len(keys.bands) == 25
    assert len(keys.anchors) == len(signature.anchors) // 8
    assert {len(each) for each in all_keys(keys)} == {8}
    assert len(all_keys(keys)) == 2 + len(keys.bands) + len(keys.anchors)


def test_a_document_without_lineage_has_no_lineage_key() -> None:
    assert STANDARD.keys(signed(LONG), KEY).lineage is None


def test_two_collections_share_no_small_key() -> None:
    first, second = (
        all_keys(STANDARD.keys(signed(LONG, lineage="u", collection=name), KEY)) for name in ("news", "news-2")
    )
    assert not first & second


def test_two_schemes_share_no_small_key() -> None:
    other = preset("standard", KEY, bands=24)
    first, second = (all_keys(scheme.keys(signed(LONG, scheme, lineage="u"), KEY)) for scheme in (STANDARD, other))
    assert not first & second


def test_one_value_in_two_kinds_gives_two_keys() -> None:
    signature = replace_fields(signed(LONG), lineage="0123456789abcdef", digest=b"0123456789abcdef")
    keys = STANDARD.keys(signature, KEY)
    assert keys.lineage != keys.digest


def test_the_same_slots_in_two_bands_give_two_keys() -> None:
    signature = replace_fields(signed(LONG), sketch=bytes(512))
    assert len(STANDARD.keys(signature, KEY).bands) == 25


def test_the_keys_of_one_signature_are_frozen() -> None:
    keys = STANDARD.keys(signed("The quick brown fox jumps over the lazy dog, twice.", lineage="u"), KEY)
    assert [keys.digest.hex(), (keys.lineage or b"").hex(), keys.bands[0].hex(), keys.anchors[0].hex()] == FROZEN


def test_a_text_of_seven_words_has_no_bands_and_no_anchors() -> None:
    keys = STANDARD.keys(signed("one two three four five six seven"), KEY)
    assert (keys.bands, keys.anchors) == ((), ())


def test_a_text_of_eight_words_has_bands_and_an_anchor() -> None:
    keys = STANDARD.keys(signed("one two three four five six seven eight"), KEY)
    assert (len(keys.bands), len(keys.anchors)) == (25, 1)


@pytest.mark.parametrize(("characters", "bands"), [(13, 0), (14, 25)])
def test_a_spaceless_text_needs_40_bytes_for_bands(characters: int, bands: int) -> None:
    keys = STANDARD.keys(signed("日本語の文章は空白なしで書かれる"[:characters]), KEY)
    assert (len(keys.bands), bool(keys.anchors)) == (bands, bands > 0)


def test_an_empty_normal_form_has_no_keys() -> None:
    with pytest.raises(ValueError, match="empty"):
        STANDARD.keys(signed("…"), KEY)


def test_a_key_with_another_fingerprint_is_refused() -> None:
    with pytest.raises(ValueError, match="0d3e89c8"):
        STANDARD.keys(signed(LONG), OTHER_KEY)


def test_keys_of_another_scheme_or_of_a_kept_signature_are_refused() -> None:
    with pytest.raises(ValueError, match="signature of"):
        STANDARD.keys(signed(LONG, COMPACT), KEY)
    with pytest.raises(ValueError, match="sketch"):
        STANDARD.keys(STANDARD.kept(signed(LONG)), KEY)


@pytest.mark.parametrize("scheme", [STANDARD, COMPACT, BANDS_ONLY], ids=lambda scheme: scheme.label)
def test_kept_leaves_what_estimates_read(scheme: Scheme) -> None:
    signature = signed(LONG, scheme)
    kept = scheme.kept(signature)
    low = [slot & 15 for slot in signature.sketch[:: scheme.sketch.bits // 8]]
    assert [half for two in kept.sketch for half in (two & 15, two >> 4)] == low
    assert (len(kept.ld), kept.raw_digest, kept.anchors) == (len(signature.ld), signature.digest, b"")
    told = {"sketch": signature.sketch, "ld": signature.ld, "anchors": signature.anchors}
    assert replace_fields(kept, raw_digest=signature.raw_digest, **told) == signature
    assert scheme.kept(kept) == kept


@pytest.mark.parametrize("scheme", [STANDARD, COMPACT, BANDS_ONLY], ids=lambda scheme: scheme.label)
@pytest.mark.parametrize("text", ["", "a", LONG, "v" * 9000 + LONG, "日本語の" * 30, LONG * 20])
def test_what_is_signed_passes_the_check(scheme: Scheme, text: str) -> None:
    scheme.check(signed(text, scheme))


def faulty(of: Scheme, **change: object) -> InvalidMessageError:
    with pytest.raises(InvalidMessageError) as caught:
        of.check(replace_fields(signed(LONG, of), **change))
    return caught.value


def test_a_signature_of_another_scheme_is_named_so() -> None:
    assert faulty(STANDARD, scheme=COMPACT.name).reason is Reason.OTHER_SCHEME


def ascending(size: int) -> bytes:
    return b"".join(number.to_bytes(8, "little") for number in range(size))


FAULTS: dict[str, tuple[Scheme, dict[str, Any]]] = {
    "a short digest": (STANDARD, {"digest": b"1"}),
    "a sketch as the index keeps it": (STANDARD, {"sketch": bytes(128)}),
    "a wide sketch": (COMPACT, {"sketch": bytes(512)}),
    "half a word": (STANDARD, {"ld": b"123456"}),
    "a rate that is no power of two": (STANDARD, {"rate": 24}),
    "a rate of zero": (STANDARD, {"rate": 0}),
    "a rate finer than the length allows": (STANDARD, {"rate": 4}),
    "a rate beyond all texts": (STANDARD, {"rate": 1 << 60}),
    "an escape without its gap": (STANDARD, {"ld": b"\xff" * 4}),
    "too many symbols": (STANDARD, {"ld": b"\x01\x00\x00\x00" * 2049, "n_bytes": 10**4, "rate": 16}),
    "a position past the end": (STANDARD, {"n_bytes": 2000}),
    "an escaped position past the end": (STANDARD, {"ld": b"\xff" * 8}),
    "gaps where words hold them": (STANDARD, {"gaps": b"\x01"}),
    "seven bytes of an anchor": (STANDARD, {"anchors": b"1234567"}),
    "unsorted anchors": (STANDARD, {"anchors": b"22222222" + b"11111111"}),
    "an anchor twice": (STANDARD, {"anchors": b"11111111" * 2}),
    "too many anchors": (STANDARD, {"anchors": ascending(513)}),
    "too many anchors and sampled windows": (NOISE, {"anchors": ascending(561)}),
    "symbols without gaps": (COMPACT, {"gaps": b""}),
    "an unfinished gap": (COMPACT, {"gaps": b"\x80"}),
    "an endless gap": (COMPACT, {"gaps": b"\x80" * 7 + b"\x01", "ld": b"ab"}),
    "too many short symbols": (COMPACT, {"gaps": b"\x01" * 1025, "ld": bytes(2050), "n_bytes": 10**5, "rate": 128}),
    "a floor past the end": (COMPACT, {"n_bytes": 2000}),
    "an LD signature": (BANDS_ONLY, {"ld": b"1234"}),
    "a rate": (BANDS_ONLY, {"rate": 8}),
    "anchors": (BANDS_ONLY, {"anchors": b"12345678"}),
    "no characters": (STANDARD, {"characters": 0}),
    "more characters than bytes": (STANDARD, {"characters": 10**5}),
    "more bytes than characters take": (STANDARD, {"characters": 100}),
    "more bytes than any text has": (BANDS_ONLY, {"n_bytes": 1 << 63, "characters": 1 << 62}),
    "no words": (STANDARD, {"words": 0}),
    "more words than characters": (STANDARD, {"words": 10**5}),
    "no shingles": (STANDARD, {"shingles": 0}),
    "more shingles than characters": (STANDARD, {"shingles": 10**5}),
    "words without bytes": (BANDS_ONLY, {"n_bytes": 0}),
}


@pytest.mark.parametrize("name", FAULTS)
def test_the_check_refuses(name: str) -> None:
    scheme, change = FAULTS[name]
    error = faulty(scheme, **change)
    assert error.reason is Reason.INVALID_SIGNATURE
    assert "expected" in error.detail


def test_the_check_names_the_field() -> None:
    assert faulty(STANDARD, anchors=b"1").detail.startswith("anchors: ")


def test_the_default_has_few_bands_unless_a_setting_asks_for_more() -> None:
    signature = signed(LONG, DENSE)
    asked = preset("dense", KEY, bands=25)
    assert len(DENSE.keys(signature, KEY).bands) == 4
    assert (
        len(asked.keys(signed(LONG, asked), KEY).bands) == len(STANDARD.keys(signed(LONG, STANDARD), KEY).bands) == 25
    )


def test_short_texts_with_one_word_changed_share_sampled_windows() -> None:
    one = "the nightly backup of the accounts database on node seven failed after two hours"
    other = one.replace("seven", "twelve")
    both = [DENSE.keys(signed(text, DENSE), KEY) for text in (one, other)]
    plain = [STANDARD.keys(signed(text, STANDARD), KEY) for text in (one, other)]
    assert len(set(both[0].anchors) & set(both[1].anchors)) > 3
    assert not set(plain[0].anchors) & set(plain[1].anchors)


def test_long_texts_have_no_sampled_windows() -> None:
    long = " ".join(f"word{number}" for number in range(2_000))
    assert signed(long, DENSE).anchors == signed(long, replace(DENSE, sampled=None)).anchors


@pytest.mark.parametrize(
    "rules",
    [SampledRules(below_bytes=0), SampledRules(usual_keys=0), SampledRules(max_keys=23), SampledRules(max_keys=1_025)],
)
def test_numbers_of_sampled_windows_out_of_range_are_refused(rules: SampledRules) -> None:
    with pytest.raises(ValueError, match="sampled below_bytes"):
        Signer(replace(DENSE, sampled=rules), KEY)


def test_sampled_windows_need_an_ld_signature() -> None:
    with pytest.raises(ValueError, match="beside an LD signature"):
        Signer(replace(DENSE, ld=None), KEY)


def test_without_signs_the_scheme_has_its_former_name() -> None:
    former = replace(preset("mail", KEY), text=TextRules(spelling="plain/1", masks="mail/1"))
    assert former.name.endswith("-732ef509")


@pytest.mark.parametrize("rule", ["spelling", "signs", "masks"])
def test_unknown_rules_of_texts_are_refused(rule: str) -> None:
    scheme = replace(preset("dense", KEY), text=TextRules(**{rule: "new/1"}))
    with pytest.raises(ValueError, match=f"{rule}: .* or none expected"):
        Signer(scheme, KEY)
