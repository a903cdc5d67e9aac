"""Frozen signatures under the public key. A change here requires a new scheme."""

from datetime import UTC, datetime
from hashlib import blake2b

import pytest

from nearstream.schemas.documents.document import Document
from nearstream.schemas.documents.signature import Signature
from nearstream.streams.fingerprints.hashing import HashKey
from nearstream.streams.fingerprints.unicode_tables import BASE, CODE_POINT, MARK, fold_table
from nearstream.streams.signing.scheme import preset
from nearstream.streams.signing.signer import Signer
from tests.reference.ld import unpack_words

KEY = HashKey.public()
TEXTS = {
    "a": "The quick brown fox jumps over the lazy dog, twice.",
    "b": " ".join(map(str, range(1000))),
    "c": "日本語のテキスト、" * 20,
    "d": "v" * 20000,
    "e": ("x" * 200 + " ") * 9,
    "f": "v" * 9000 + " " + " ".join(map(str, range(200))),
}
LETTERS = (
    "\u0130\u015e\u00c7\u0130 stra\u00dfe \u06cc\u06a9 \u05e9\u05c1\u05b8 \u4f7f Python \u03ac\u03c2 twice and again"
)
COUNTS = {  # n_bytes, characters, words, spaceless, digest starts
    "a": (49, 49, 10, False, "830a2aa648ac4ebd"),
    "b": (3889, 3889, 1000, False, "c1ea1570c1811c0e"),
    "c": (499, 179, 20, True, "52592ce3875a373a"),
    "d": (20000, 20000, 313, False, "a2d20f64c67e0fdc"),
    "e": (1808, 1808, 36, False, "c6936bfa483ea1ce"),
    "f": (9690, 9690, 341, False, "058bb4c982cf560d"),
}
SKETCHES = {  # slot 0, hash of the sketch
    "a": ("eea02550", "9ab1a04bec301b81"),
    "b": ("b9055774", "5c4dd369ac8e0f5d"),
    "c": ("4b7cbafc", "1c2a3bcec64f49a9"),
    "d": ("7b0bbe1a", "d966862a011c5509"),
    "e": ("720ac4e2", "b32fbaee139de729"),
    "f": ("04c4eadc", "6f03f24e4a715888"),
}
LD = {  # rate, u32 words, first word, hash of ld
    "a": (8, 2, "3119e016", "4cfd05e38030db55"),
    "b": (8, 514, "63b84000", "eb8da99a9068b9a6"),
    "c": (8, 115, "48a3a005", "08560cd59beeb32f"),
    "d": (32, 0, "", "e4a6a0577479b2b4"),
    "e": (8, 24, "9473e0c2", "edc74b7224a4bb2d"),
    "f": (16, 46, "fa2c2000", "4dcf208cd83336fb"),
}
ANCHORS = {  # number of anchors with the sampled windows of noise, their hash
    "a": (4, "1085b6c3483c13ff"),
    "b": (90, "c1877b5479d21ade"),
    "c": (3, "5d9dbddb40a8a734"),
    "d": (1, "9ab326a376db046f"),
    "e": (1, "79f4bde1f9716f14"),
    "f": (37, "9606e9cad538f389"),
}
COMPACT = {  # hash of the sketch, rate, symbols, hash of ld, gap bytes, their hash, anchors, their hash
    "b": ("21d0fc9b3c978b9d", 16, 262, "1d4257e71a2ce8d9", 262, "1c9487a48c0a6638", 28, "6c16eb4f2a5c54d1"),
    "f": ("fe3dfdbf113cdef9", 32, 21, "475a0cd4a3be7bf7", 22, "93b16112d6f8ebdc", 6, "0e50279faabaf6e4"),
}


FINE = ("e77dada2f03f2c6a", "de098abab78e5215", "0381b5f6b49839ef")


def signed(text: str, label: str = "noise") -> Signature:
    document = Document(id="x", text=text, observed_at=datetime(2026, 3, 2, tzinfo=UTC))
    return Signer(preset(label, KEY), KEY).sign(document)


def short_hash(data: bytes) -> str:
    return blake2b(data, digest_size=8).hexdigest()


def test_the_public_key_derives_the_frozen_numbers() -> None:
    assert KEY.fingerprint == "0d3e89c8"
    assert (int.from_bytes(KEY.table_bytes[:8], "little"), int.from_bytes(KEY.table_bytes[-8:], "little")) == (
        0xBEC23422933DA99A,
        0xE662880A74AE5FC8,
    )
    assert (KEY.base, KEY.word_base) == (0x583530DFEE1EC31D, 0xD38D8ED45086381D)
    assert (KEY.sketch_salt, KEY.ld_salt) == (0xFC475ADD9E64E8AC, 0x799D366322B7300C)
    assert KEY.anchor_salt == 0xA0958055EB17615F
    assert KEY.permutation[:8].hex() == "eaffe3537b286985"
    assert KEY.small_key(b"abc").hex() == "80296ffd1cd35ee4c20f792b31c5c2e3"


@pytest.mark.parametrize("name", TEXTS)
def test_the_signatures_are_frozen(name: str) -> None:
    s = signed(TEXTS[name])
    assert (s.n_bytes, s.characters, s.words, s.spaceless, s.digest[:8].hex()) == COUNTS[name]
    assert (s.sketch[3::-1].hex(), short_hash(s.sketch)) == SKETCHES[name]
    assert (s.rate, len(s.ld) // 4, s.ld[3::-1].hex(), short_hash(s.ld)) == LD[name]
    assert (len(s.anchors) // 8, short_hash(s.anchors)) == ANCHORS[name]


@pytest.mark.parametrize("name", COMPACT)
def test_the_compact_signatures_are_frozen(name: str) -> None:
    s = signed(TEXTS[name], "compact")
    ld = (s.rate, len(s.ld) // 2, short_hash(s.ld), len(s.gaps), short_hash(s.gaps))
    assert (short_hash(s.sketch), *ld, len(s.anchors) // 8, short_hash(s.anchors)) == COMPACT[name]


def test_one_golden_gap_needs_an_escape() -> None:
    s = signed(TEXTS["f"])
    symbols, gaps = unpack_words(s.ld)
    assert (len(s.ld) // 4, symbols.size, int((gaps >= 8191).sum())) == (46, 45, 1)


def test_the_fold_table_is_the_golden_one() -> None:
    table = fold_table()
    kept = (table & (BASE | MARK)) != 0
    codes, bases = (table & CODE_POINT).tolist(), (table & BASE != 0).tolist()
    lines = ["-" if not keep else f"{codes[i]:x}{'B' if bases[i] else 'M'}" for i, keep in enumerate(kept.tolist())]
    assert int(kept.sum()) == 135_955
    assert short_hash(("\n".join(lines) + "\n").encode()) == "800b0038474d6b7b"


def test_the_signature_of_a_short_text_with_every_window_is_frozen() -> None:
    s = signed("Severe thunderstorm warning until 5 pm. Stay indoors.", "fine")
    assert (s.scheme, s.rate, len(s.ld) // 4) == ("fine-1-u14-k0d3e89c8-0e5dc9ce", 1, 36)
    assert (s.digest[:8].hex(), short_hash(s.ld), short_hash(s.anchors)) == FINE


def test_the_signature_of_other_letters_is_frozen() -> None:
    s = signed(LETTERS, "fine")
    assert s.scheme == "fine-1-u14-k0d3e89c8-0e5dc9ce"
    assert (s.n_bytes, s.characters, s.words, s.spaceless, s.digest.hex()) == (
        52,
        43,
        8,
        False,
        "ceff41582c90a8c2ff4b49a7cd317504",
    )
    assert (short_hash(s.sketch), short_hash(s.ld), short_hash(s.anchors)) == (
        "ba674a5a642f2a5b",
        "82fae81b44459982",
        "4f500cb03bd4d61a",
    )
