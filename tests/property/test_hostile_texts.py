"""Hostile texts stay within limits of work, memory and size."""

import os
import subprocess
import sys
import time
import unicodedata
from datetime import UTC, datetime
from pathlib import Path
from random import Random

import pytest

from benchmarks.speed.hostile import hostile_texts
from nearstream.schemas.documents.document import Document
from nearstream.schemas.topics.codec import InvalidMessageError, decode_signature, encode_signature
from nearstream.streams.estimates.comparing import estimate
from nearstream.streams.fingerprints.hashing import HashKey
from nearstream.streams.signing.scheme import preset
from nearstream.streams.signing.signer import Signer
from tests.reference.ld import view
from tests.reference.signing import PUBLIC, signers
from tests.support.collisions import thue_morse

SIZE = 1 << 18
LABELS = ("fine", "compact", "noise")
SEEN = datetime(2026, 3, 2, tzinfo=UTC)
ROOT = Path(__file__).parents[2]

letters = Random(2)
FILLER = "".join(chr(letters.randint(0x4E00, 0x9FFF)) for _ in range(SIZE // 3))
TEXTS = {
    **hostile_texts(SIZE),
    "all words different": " ".join(map(str, range(SIZE // 7))),
    "letters in no order": "".join(letters.choices("abcdefghijklmnopqrstuvwxyz", k=SIZE)),
    "characters in no order": FILLER,
    "one spaceless character": "語" * (SIZE // 3),
    "period of 16 bytes": "abcdefghijklmnop" * (SIZE // 16),
    "period of 8,191 bytes": ("".join(letters.choices("abcdef ", k=8_191)) * (SIZE // 8_191)),
    "far symbols": ("v" * 9_000 + " " + " ".join(map(str, range(300))) + " ") * (SIZE // 11_000),
    "words of 64 and 65 bytes": " ".join("x" * (64 + number % 2) for number in range(SIZE // 65)),
}


def document(text: str) -> Document:
    return Document(id="x", text=text, observed_at=SEEN)


@pytest.mark.parametrize("name", TEXTS)
def test_a_signature_is_bounded_whatever_the_text(name: str) -> None:
    for label in LABELS:
        signature = signers(label)[1].sign(document(TEXTS[name]))
        scheme = preset(label, PUBLIC)
        scheme.check(signature)  # this bounds the symbols and the anchors
        if signature.n_bytes:  # a text of symbols alone has an empty normal form and no keys
            assert len(scheme.keys(signature, PUBLIC).bands) <= scheme.bands.bands
        far = signature.n_bytes // 8_191  # gaps that need an additional number
        encoded = encode_signature(signature)
        assert len(encoded) <= 512 + 4 * (scheme.ld.max_symbols + far) + 8 * (scheme.anchors.max_anchors + 64) + 256
        assert decode_signature(encoded) == signature


@pytest.mark.parametrize("name", ["one character", "one spaceless character", "short period", "period of 16 bytes"])
def test_a_short_period_leaves_few_symbols_and_anchors(name: str) -> None:
    signature = signers()[1].sign(document(TEXTS[name]))
    assert len(signature.anchors) // 8 <= 2
    assert len(signature.ld) // 4 <= 2_048
    assert signature.shingles <= 16


@pytest.mark.parametrize("name", ["one word", "one line again", "words of one letter"])
def test_repetition_adds_no_shingle(name: str) -> None:
    signature = signers()[1].sign(document(TEXTS[name]))
    assert signature.shingles <= {"one word": 1, "one line again": 12}.get(name, signature.words - 4)
    # A scheme with plain spelling joins words of one letter.
    assert signers("compact")[1].sign(document(TEXTS[name])).words > SIZE // 8


# The peak memory of a process never falls, so the script does nothing large before except making the bytes. It reads
# /proc because getrusage includes the peak of the parent.
PEAK = """
import sys
from pathlib import Path
from nearstream.streams.native import _native
from nearstream.streams.fingerprints.hashing import HashKey
from nearstream.streams.fingerprints.unicode_tables import unicode_tables
from nearstream.streams.signing.signer import packed_context
from nearstream.streams.signing.scheme import preset

def peak():
    (line,) = (line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM:"))
    return 1024 * int(line.split()[1])

key, size = HashKey.public(), int(sys.argv[1])
context, tables = _native.context(packed_context(preset("fine", key), key)), unicode_tables()
texts = [unit * (size // len(unit)) for unit in (
    b"a b c d e ", b"word ", b"v", b"".join(b"%d " % n for n in range(10**5)),
    "".join(map(chr, range(0x4E00, 0x9E00))).encode(), "語a b ".encode(), "e\u0301 ".encode(), "語a\u0323".encode(),
)]
_native.sign(context, tables, texts[0][:1000], size)
before = peak()
for text in texts:
    assert _native.sign(context, tables, text, size)
print((peak() - before) / size)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells the peak of a process alone")
def test_scratch_of_signing_stays_below_60_bytes_a_byte() -> None:
    size = 4 << 20
    done = subprocess.run(
        [sys.executable, "-c", PEAK, str(size)],
        capture_output=True, check=True, cwd=ROOT, text=True, env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert 1 < float(done.stdout) <= 60


MARKED = {
    "falling": "a" + "\u0301\u0323" * 16_384,
    "no letter": "\u0323" * 32_768,
    "on many letters": ("a" + "\u0323\u0301" * 200 + " ") * 80,
    "halfwidth": "\uff9e" * 20_000,
    "two kinds": "e" + "\u0345" * 16_384 + "\u0301" * 16_384,
}


def times_as_long(text: str, other: str, enough: float, label: str = "fine") -> float:
    """Return the ratio of the times of signing for the other and the first text.

    It is the least of several trials, which end once it is below `enough`.
    """
    signer = signers(label)[1]

    def spent(text: str) -> int:
        start = time.thread_time_ns()
        signer.sign(document(text))
        return time.thread_time_ns() - start

    least = float("inf")
    for _ in range(20):  # other processes may share the core
        once, again = (min(spent(each) for _ in range(10)) for each in (text, other))
        least = min(least, again / once)
        if least < enough:
            break
    return least


@pytest.mark.parametrize("label", ["fine", "mail"])
@pytest.mark.parametrize("name", MARKED)
def test_twice_as_many_marks_take_less_than_three_times_as_long(name: str, label: str) -> None:
    assert times_as_long(MARKED[name], MARKED[name] * 2, 3, label) < 3


def test_a_power_of_two_of_windows_takes_no_longer_than_one_more() -> None:
    text = "".join(chr(letters.randint(0x4E00, 0x9FFF)) for _ in range((1 << 16) + 1))
    assert times_as_long(text, text[1:], 1.4) < 1.4


def test_texts_that_differ_in_a_thue_morse_word_differ_under_100_keys() -> None:
    words = "some words stand before {} and as many after it"
    one, other = thue_morse(1_024), thue_morse(2_048)[1_024:]
    assert one != other
    assert sorted(one) == sorted(other)
    for number in range(100):
        signer = signers("fine", HashKey.from_secret(f"a secret for this test, {number}".encode()))[1]
        a, b = (signer.sign(document(words.format(word))) for word in (one, other))
        assert a.digest != b.digest
        assert a.sketch != b.sketch
        assert estimate(a, b).sketch_resemblance < 1
        assert a.ld != b.ld


def test_what_nfkc_makes_too_large_is_refused() -> None:
    signer = Signer(preset("fine", PUBLIC), PUBLIC, 4_096)
    text = "\ufdfa" * 400  # 1,200 bytes as sent
    with pytest.raises(InvalidMessageError, match="4096 bytes"):
        signer.sign(document(text))
    assert signer.sign(document(text[:100])).n_bytes <= 4_096


def test_no_character_grows_more_than_elevenfold() -> None:
    codes = [*range(0xD800), *range(0xE000, 0x30000), *range(0xE0000, 0xE0200)]
    grown = {
        code: len(unicodedata.normalize("NFKC", chr(code)).encode()) / len(chr(code).encode())
        for code in codes
        if not unicodedata.is_normalized("NFKC", chr(code))
    }
    assert max(grown.values()) == grown[0xFDFA] == 11


def test_filler_coarsens_its_own_document_only() -> None:
    signer = signers()[1]
    text = " ".join(letters_of(number) for number in range(600))
    alone, beside = (signer.sign(document(each)) for each in (text, f"{text} {' '.join(map(str, range(40_000)))}"))
    assert beside.rate > alone.rate
    own = set(view(alone, beside.rate, 19 - (beside.rate // alone.rate).bit_length() + 1).symbols.tolist())
    bits = 19 - (beside.rate // alone.rate).bit_length() + 1
    assert own <= set(view(beside, beside.rate, bits).symbols.tolist())
    assert signer.sign(document(text)) == alone


def letters_of(number: int) -> str:
    return "".join(Random(number).choices("abcdefghijklmnopqrstuvwxyz", k=7))
