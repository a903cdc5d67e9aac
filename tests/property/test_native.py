"""C signs any text as the reference does, byte for byte, and refuses bad arguments."""

import json
import unicodedata
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import UTC, datetime
from hashlib import blake2b
from itertools import islice
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nearstream.schemas.documents.document import Document
from nearstream.schemas.documents.signature import Signature
from nearstream.streams.fingerprints.hashing import HashKey
from nearstream.streams.fingerprints.normalize import normalize
from nearstream.streams.fingerprints.parameters import TextRules
from nearstream.streams.fingerprints.unicode_tables import packed_tables, unicode_tables
from nearstream.streams.native import native
from nearstream.streams.signing.scheme import preset
from nearstream.streams.signing.signer import packed_context
from tests.fuzz_native import CHECKS
from tests.reference.normal_form import is_spaceless, normalized
from tests.reference.signing import PUBLIC, signers
from tests.support.texts import any_text, signed_text

LABELS = ("fine", "mail", "compact", "noise")
EXAMPLES = Path(__file__).parents[2] / "examples" / "documents.jsonl"
SEEN = datetime(2026, 3, 2, tzinfo=UTC)
SLICES = ((7, 707), (1000, 6000))
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


def both(text: str, label: str = "fine") -> tuple[Signature, Signature]:
    document = Document(id="x", text=text, observed_at=SEEN)
    expected, found = (signer.sign(document) for signer in signers(label))
    return expected, found


@pytest.mark.parametrize("label", LABELS)
def test_c_agrees_on_every_example_and_its_slices(label: str) -> None:
    with EXAMPLES.open(encoding="utf-8") as lines:
        texts = [json.loads(line)["text"] for line in lines]
    assert len(texts) >= 100
    for text in texts[::4]:
        for first, last in SLICES:
            expected, found = both(text[first:last], label)
            assert found == expected


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_c_does_what_the_reference_does_with_random_input(check: Callable[[Random], None]) -> None:
    for seed in range(60):
        check(Random(seed))


@settings(max_examples=200)
@given(signed_text, st.sampled_from(LABELS))
def test_c_agrees_on_any_text(text: str, label: str) -> None:
    expected, found = both(text, label)
    assert found == expected


@settings(max_examples=80)
@given(st.lists(st.one_of(any_text, st.just("word " * 4)), max_size=12).map(" ".join))
def test_c_agrees_on_texts_of_which_stretches_need_nfkc(text: str) -> None:
    expected, found = both(text)
    assert found == expected


@pytest.mark.parametrize("name", HOSTILE)
def test_c_agrees_on_hostile_texts(name: str) -> None:
    for label in ("fine", "noise"):
        expected, found = both(HOSTILE[name][:30_000], label)
        assert found == expected, label


@pytest.mark.parametrize("label", ["fine", "compact"])
def test_c_agrees_on_every_length_to_200(label: str) -> None:
    bases = ("the 7 ducks swam ", "v", "語の文、", "a b c ", "é ", "x\u0301", "ab\u00a0語 ")
    for base in bases:
        for size in (*range(34), *range(34, 201, 9)):
            expected, found = both((base * 200)[size % 7 : size % 7 + size], label)
            assert found == expected


def test_c_agrees_under_another_key() -> None:
    key = HashKey.from_secret(b"another secret of thirty-two bytes")
    document = Document(id="x", text="語 " * 50 + "word other " * 400, observed_at=SEEN)
    expected, found = (signer.sign(document) for signer in signers("fine", key))
    assert found == expected


def test_texts_signed_at_once_do_not_mix() -> None:
    documents = [
        Document(id="x", text=f"{n} " + text[:50_000], observed_at=SEEN)
        for n, text in enumerate(islice(HOSTILE.values(), 8))
    ]
    signer = signers()[1]
    expected = [signer.sign(document) for document in documents]
    with ThreadPoolExecutor(4) as threads:
        assert list(threads.map(signer.sign, documents * 5)) == expected * 5


@pytest.mark.parametrize("kept", ["a", "ab!", "!?", "\ufdfa", "語"])
def test_digests_are_those_of_hashlib_at_every_length(kept: str) -> None:
    context, key = native.context(packed_context(preset("fine", PUBLIC), PUBLIC)), PUBLIC.digest_key
    for size in (*range(300), 1_023, 1_024, 1_025, 12_800):
        text = (kept * size)[:size]
        raw = text.encode()
        signed = native.sign(context, unicode_tables(), raw, 1 << 20)
        assert signed is not None
        form = normalize(text).data
        assert signed[:2] == tuple(blake2b(data, digest_size=16, key=key).digest() for data in (form, raw))


@pytest.mark.parametrize("between", ["", "a", "\u1100", "\u05d0"])
def test_c_agrees_on_every_code_point_with_marks_behind(between: str) -> None:
    for first in range(0, 0x32000, 4_096):
        codes = map(chr, range(first, first + 4_096))
        expected, found = both(" ".join(between + code + "\u0323\u0301" + code for code in codes), "compact")
        assert found == expected


def test_c_agrees_on_marks_in_any_order() -> None:
    pool = [chr(code) for code in range(0x1F000) if unicodedata.combining(chr(code)) or code in range(0x1100, 0x1200)]
    pool += [chr(code) for code in range(0x1F000) if unicodedata.decomposition(chr(code))]
    for seed in range(300):
        random = Random(seed)
        expected, found = both("".join(random.choices(pool + ["a", "o", " "] * 900, k=random.choice([4, 40, 900]))))
        assert found == expected


@pytest.mark.parametrize("size", [0, 1, 4000])
def test_a_context_of_another_length_is_refused(size: int) -> None:
    with pytest.raises(ValueError, match="context: "):
        native.context(bytes(size))


def test_tables_that_do_not_fit_together_are_refused() -> None:
    packed = packed_tables()
    for wrong in (b"", packed[:-1], packed + b"\0", b"\xff" * len(packed), packed[:24] + b"\xff" * (len(packed) - 24)):
        with pytest.raises(ValueError, match="unicode: "):
            native.unicode(wrong)


def test_any_sound_tables_are_worked_with() -> None:
    whole, context = packed_tables(), native.context(packed_context(preset("fine", PUBLIC), PUBLIC))
    for seed in range(100):
        random, packed = Random(seed), bytearray(whole)
        for _ in range(random.choice([1, 100, 10_000])):
            packed[random.randrange(24, len(packed))] = random.choice([0, 1, random.getrandbits(8)])
        with suppress(ValueError):
            tables = native.unicode(bytes(packed))
            for text in ("e\u0301\u0323" * 900, "\ufdfa\u1100\u1161\u11a8\U0001d15e" * 90, "語 " * 90):
                native.sign(context, tables, text.encode(), 1 << 20)


def test_what_is_not_ascii_needs_tables() -> None:
    context = native.context(packed_context(preset("fine", PUBLIC), PUBLIC))
    assert native.sign(context, None, b"plain", 5) is not None
    with pytest.raises(ValueError, match="ASCII"):
        native.sign(context, None, "é".encode(), 5)


def test_a_normal_form_of_too_many_bytes_gives_none() -> None:
    context = native.context(packed_context(preset("fine", PUBLIC), PUBLIC))
    assert native.sign(context, None, b"plain, ", 5) is not None
    assert native.sign(context, None, b"plain, ", 4) is None
    assert native.sign(context, unicode_tables(), ("\ufdfa" * 100).encode(), 3_000) is None


@pytest.mark.parametrize("arguments", [(), (None, None, b"", 5), (object(), None, b"", 5)])
def test_other_things_than_a_context_are_refused(arguments: tuple[object, ...]) -> None:
    with pytest.raises((TypeError, ValueError)):
        native.sign(*arguments)
    context = native.context(packed_context(preset("fine", PUBLIC), PUBLIC))
    for wrong in ((context, context, b"", 5), (context, None, "text", 5), (context, None, b"", -1), (context, None)):
        with pytest.raises((TypeError, ValueError, OverflowError)):
            native.sign(*wrong)


@pytest.mark.parametrize(
    "data", [b"\xff", b"\xc3", b"a\x80", b"\xe3\x81", b"\xf0\x9f\x98", b"\xf4\x90\x80\x80", b"\xc0\xaf"]
)
def test_bytes_that_are_no_utf_8_are_refused(data: bytes) -> None:
    context = native.context(packed_context(preset("fine", PUBLIC), PUBLIC))
    for before in (b"ok ", "e\u0301".encode()):
        with pytest.raises(ValueError, match="UTF-8"):
            native.sign(context, unicode_tables(), before + data, 1 << 20)


@settings(max_examples=200)
@given(any_text, st.integers(1, 64), st.integers(0, 9))
def test_c_makes_the_normal_form_of_the_reference(text: str, mark_run: int, share: int) -> None:
    rules = TextRules(mark_run=mark_run, spaceless_share=share)
    expected = normalized(text, rules)
    assert normalize(text, rules) == (expected.encode(), len(expected), is_spaceless(expected, rules))


@pytest.mark.parametrize(
    "wrong", [(None, "é".encode(), 30, 5), (None, b"", 0, 5), (None, b"", 30, 1 << 13), (3, b"", 1, 1)]
)
def test_a_normal_form_of_other_arguments_is_refused(wrong: tuple[object, ...]) -> None:
    with pytest.raises(ValueError, match=r"expected|PyCapsule"):
        native.normal_form(*wrong)
