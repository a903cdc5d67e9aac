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
    "short, with every window": "Severe thunderstorm warning until 5 pm. Stay indoors.",
    "letters": "\u0130\u015e\u00c7\u0130 stra\u00dfe \u06cc\u06a9 \u05e9\u05c1\u05b8 \u4f7f Python \u03ac\u03c2 "
    "twice and again",
    "rows": "\n".join(f"row of {number:x}h" for number in range(99, 60, -1)),
}
# The texts' signatures under each preset, each as a hash of its fields.
FROZEN = {
    "noise-1-u14-k0d3e89c8-872fb593": "ebd6189 c605ff0 0ea0cce f07424b 5b14c3e 3e31c7a 3707236 be63b0a d085d75",
    "compact-1-u14-k0d3e89c8-e57f8fa8": "cc96b68 d385f27 09ce85f 53cf64c e6a085d d135ad8 8f8da68 d9bbaa0 c6eec3f",
    "fine-1-u14-k0d3e89c8-547a5fec": "f2600db 9cd91c9 af2f026 f07424b 5b14c3e 0b82f06 0a7d25c 38064d2 bf78bc4",
    "mail-1-u14-k0d3e89c8-4938d537": "e392efc 8d1bc37 af2f026 cd36aea 6142a07 d55d855 b7f8475 3a97871 8bcdc9f",
}


def signed(text: str, label: str) -> Signature:
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


def frozen(s: Signature) -> str:
    fields = (s.n_bytes, s.characters, s.words, s.spaceless, s.rate, s.digest, s.sketch, s.ld, s.gaps, s.anchors)
    return short_hash(repr(fields).encode())[:7]


@pytest.mark.parametrize("scheme", FROZEN)
def test_the_signatures_are_frozen(scheme: str) -> None:
    signatures = {name: signed(text, scheme.partition("-")[0]) for name, text in TEXTS.items()}
    assert {each.scheme for each in signatures.values()} == {scheme}
    assert {name: frozen(each) for name, each in signatures.items()} == dict(
        zip(TEXTS, FROZEN[scheme].split(), strict=True)
    )


def test_one_golden_gap_needs_an_escape() -> None:
    s = signed(TEXTS["f"], "noise")
    symbols, gaps = unpack_words(s.ld)
    assert (len(s.ld) // 4, symbols.size, int((gaps >= 8191).sum())) == (46, 45, 1)


def test_the_fold_table_is_the_golden_one() -> None:
    table = fold_table()
    kept = (table & (BASE | MARK)) != 0
    codes, bases = (table & CODE_POINT).tolist(), (table & BASE != 0).tolist()
    lines = ["-" if not keep else f"{codes[i]:x}{'B' if bases[i] else 'M'}" for i, keep in enumerate(kept.tolist())]
    assert int(kept.sum()) == 135_955
    assert short_hash(("\n".join(lines) + "\n").encode()) == "800b0038474d6b7b"
