"""The C twin gives the bytes of numpy, on any text; bad arguments are refused."""

import json
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import UTC, datetime
from functools import cache
from itertools import islice
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from schemas.document import Document
from schemas.signature import Signature
from streams.hashing import HashKey
from streams.scheme import preset
from streams.signer import Signer
from tests.implementations import PUBLIC, implementation_of, signer_of
from tests.property.test_signing import RANGES, any_text, mixed_text, signed_text

try:
    from streams import _native
    from streams.native import packed_context, packed_table
except ImportError:  # the fixture below skips, or fails
    pass

LABELS = ("standard", "compact", "bands-only")
EXAMPLES = Path(__file__).parents[2] / "examples" / "documents.jsonl"
SEEN = datetime(2026, 3, 2, tzinfo=UTC)
SLICES = ((0, None), (7, 707), (1000, 6000), (313, 14_313))
MARKS = "\u0301\u0323\u3099\uff9e\u0345\u05b8\u0e48"
letters = Random(5)
HOSTILE = {
    "one word": "abc " * 60_000,
    "one-letter words": " ".join(letters.choice("abcdefghij") for _ in range(60_000)),
    "few words in turn": " ".join(str(number % 100) for number in range(50_000)),
    "one letter": "v" * 300_000,
    "a short period": "abcab" * 40_000,
    "one letter of a script without spaces": "語" * 60_000,
    "a period in such a script": "日本語" * 20_000,
    "few letters of such a script": "".join(letters.choice("日本語abcd") for _ in range(60_000)),
    "all different": " ".join(map(str, range(40_000))),
    "words around the cut": " ".join("x" * (62 + number % 5) for number in range(1_000)),
    "far symbols": "v" * 9_000 + " ".join(map(str, range(900))) + "w" * 70_000,
    "marks": "a" + "\u0323\u0301" * 4_000,
    "marks on every word": "e\u0301 x " * 9_000,
    "marks on some words": ("word " * 50 + "e\u0301te\u0301, ") * 90,
    "marks on twenty words": ("word " * 500 + "e\u0301te\u0301-\u2014 ") * 20,
    "stretches that leave nothing": "\u0301 a \u0301\u0301\tb \u0301 \u0301 c\n\u0301",
    "characters that grow": "\ufdfa" * 5_000,
    "letters that grow by a byte": "\u023a" * 5_000,
    "spaces alone": " \t\n" * 1_000,
    "surrogates": "\ud800a\udc00 \ud83c\udf89 b" * 500,
    "controls": "".join(map(chr, range(0x20))) * 50 + "a\0b",
}


@cache
def signers(label: str) -> tuple[Signer, Signer]:
    return signer_of("numpy", label), signer_of("native", label)


def both(text: str, label: str = "standard") -> tuple[Signature, Signature]:
    document = Document(id="x", text=text, observed_at=SEEN)
    numpy, native = (signer.sign(document) for signer in signers(label))
    return numpy, native


@pytest.fixture(autouse=True, scope="module")
def native_is_built() -> None:
    implementation_of("native")


@pytest.mark.parametrize("label", LABELS)
def test_the_twins_agree_on_every_example_and_its_slices(label: str) -> None:
    with EXAMPLES.open(encoding="utf-8") as lines:
        texts = [json.loads(line)["text"] for line in lines]
    assert len(texts) >= 100
    for text in texts:
        for first, last in SLICES:
            numpy, native = both(text[first:last], label)
            assert native == numpy


@settings(max_examples=400, deadline=None)
@given(signed_text, st.sampled_from(LABELS))
def test_the_twins_agree_on_any_text(text: str, label: str) -> None:
    numpy, native = both(text, label)
    assert native == numpy


@settings(max_examples=200, deadline=None)
@given(st.lists(st.one_of(any_text, st.just("word " * 4)), max_size=12).map(" ".join))
def test_the_twins_agree_on_texts_of_which_stretches_need_nfkc(text: str) -> None:
    numpy, native = both(text)
    assert native == numpy


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("label", LABELS)
def test_the_twins_agree_on_hostile_texts(name: str, label: str) -> None:
    numpy, native = both(HOSTILE[name], label)
    assert native == numpy


@pytest.mark.parametrize("label", LABELS)
def test_the_twins_agree_on_every_length_to_200(label: str) -> None:
    bases = ("the 7 ducks swam ", "v", "語の文、", "a b c ", "é ", "x\u0301", "ab\u00a0語 ")
    for base in bases:
        for size in range(201):
            numpy, native = both((base * 200)[size % 7 : size % 7 + size], label)
            assert native == numpy


def test_the_twins_agree_on_generated_texts_of_all_scripts() -> None:
    for seed in range(2_000):
        random = Random(seed)
        ranges = random.sample(RANGES, random.randint(1, 4))
        text = mixed_text(seed, ranges, random.randint(0, 400))
        if seed % 4 == 0:
            text = " ".join(text[i : i + 9] + random.choice(MARKS) for i in range(0, len(text), 9))
        numpy, native = both(text, LABELS[seed % 3])
        assert native == numpy


def test_the_twins_agree_under_another_key() -> None:
    key = HashKey.from_secret(b"another secret of thirty-two bytes")
    document = Document(id="x", text="語 " * 50 + "word other " * 400, observed_at=SEEN)
    numpy, native = (signer_of(name, key=key).sign(document) for name in ("numpy", "native"))
    assert native == numpy


def test_texts_signed_at_once_do_not_mix() -> None:
    documents = [
        Document(id="x", text=f"{n} " + text[:50_000], observed_at=SEEN)
        for n, text in enumerate(islice(HOSTILE.values(), 8))
    ]
    native = signers("standard")[1]
    expected = [native.sign(document) for document in documents]
    with ThreadPoolExecutor(4) as threads:
        assert list(threads.map(native.sign, documents * 5)) == expected * 5


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=400), st.booleans(), st.sampled_from(LABELS))
def test_any_bytes_are_signed(data: bytes, spaceless: bool, label: str) -> None:
    assert len(_native.sign(packed_context(preset(label, PUBLIC), PUBLIC), data, spaceless)) == 7
    form = _native.normalize_ascii(data)
    assert b" ".join(form.split()) == form


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_any_numbers_in_a_context_are_worked_with_or_refused(data: st.DataObject) -> None:
    packed = bytearray(packed_context(preset("standard", PUBLIC), PUBLIC))
    numbers = len(packed) // 8
    for _ in range(data.draw(st.integers(1, 4))):
        place = 8 * data.draw(st.integers(512 + 2 * 65, numbers - 1))
        value = data.draw(st.one_of(st.integers(0, 70), st.integers(0, 2**64 - 1)))
        packed[place : place + 8] = value.to_bytes(8, "little")
    text = ("a few words of a text " * 30).encode()
    with suppress(ValueError):
        _native.sign(packed, text, data.draw(st.booleans()))


@pytest.mark.parametrize("size", [0, 1, 4000])
def test_a_context_of_another_length_is_refused(size: int) -> None:
    with pytest.raises(ValueError, match="context: "):
        _native.sign(bytes(size), b"text", False)


@pytest.mark.parametrize(
    "data", [b"\xff", b"\xc3", b"a\x80", b"\xe3\x81", b"\xf0\x9f\x98", b"\xf4\x90\x80\x80", b"\xc0\xaf"]
)
def test_bytes_that_are_no_utf_8_are_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match="UTF-8"):
        _native.normalize_bmp(b"ok " + data, packed_table())
    with pytest.raises(ValueError, match="table: "):
        _native.normalize_bmp(data, b"")
