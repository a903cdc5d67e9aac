"""A record in the index restores the signature from which it was made."""

from datetime import UTC, datetime
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from nearstream.schemas.documents.document import Document
from nearstream.schemas.documents.signature import Origin, Signature
from nearstream.schemas.topics.codec import encode_signature
from nearstream.streams.fingerprints.hashing import HashKey
from nearstream.streams.native import native
from nearstream.streams.signing.kept import kept_symbols
from nearstream.streams.signing.scheme import preset
from nearstream.streams.signing.signer import Signer
from nearstream.streams.store.record import pack_signature, pack_text, patched, unpack_signature
from tests.reference import ld_compact
from tests.reference.ld import pack_varints, pack_words, symbol_bits
from tests.reference.text_part import unpack_text

NOW = datetime(2026, 1, 1, tzinfo=UTC)
KEY = HashKey.from_secret(b"test")


def there_and_back(signature: Signature) -> Signature:
    packed = pack_signature(signature)
    return unpack_signature(packed, signature.scheme, signature.digest[:8], signature.observed_at_ms)


def text(words: int, seed: int) -> str:
    random = Random(seed)
    return " ".join(f"{random.randrange(5_000):x}" for _ in range(words))


@pytest.mark.parametrize("label", ["fine", "compact"])
@pytest.mark.parametrize("words", [1, 60, 700, 3_000, 40_000])
def test_signatures_come_back_whole(label: str, words: int) -> None:
    scheme = preset(label, KEY)
    document = Document(id="a", text=text(words, 1), observed_at=NOW, labels={"kind": "ü"})
    kept = scheme.kept(Signer(scheme, KEY).sign(document, Origin("other", 3, 7), ("charset_replaced",)))
    assert there_and_back(kept) == kept


@pytest.mark.parametrize(("label", "most"), [("fine", 2.7 / 4), ("compact", 2.4 / 3)])
def test_symbols_and_gaps_take_fewer_bytes(label: str, most: float) -> None:
    scheme = preset(label, KEY)
    kept = scheme.kept(Signer(scheme, KEY).sign(Document(id="a", text=text(700, 2), observed_at=NOW)))
    less = len(encode_signature(kept)) - len(pack_signature(kept))
    assert less > (1 - most) * (len(kept.ld) + len(kept.gaps))


@pytest.mark.parametrize("page", ["https://example.org/a", "https://example.org/b", None])
def test_an_address_is_stored_once_where_it_is_the_lineage(page: str | None) -> None:
    signature = replace(_plain(), lineage="https://example.org/a")
    told = replace(signature, url=page)
    assert there_and_back(told) == told
    same = replace(signature, url="https://example.org/a")
    assert there_and_back(same) == same
    assert len(pack_signature(same)) == len(pack_signature(signature))
    everywhere = replace(same, id="https://example.org/a")
    assert there_and_back(everywhere) == everywhere
    assert pack_signature(everywhere).count(b"example") == 1


@given(
    st.lists(st.tuples(st.integers(0, 2**19 - 1), st.integers(0, 9_000)), max_size=40),
    st.sampled_from([1, 8, 16, 64, 512]),
)
def test_any_words_come_back(pairs: list[tuple[int, int]], rate: int) -> None:
    symbols, gaps = (np.array([pair[half] for pair in pairs], dtype=np.int64) for half in (0, 1))
    words = pack_words(symbols, gaps)
    signature = replace(_plain(), rate=rate, ld=words)
    apart = replace(_plain(), rate=rate, ld=symbols.astype("<u2").tobytes(), gaps=pack_varints(gaps))
    for told in (signature, apart):
        kept = replace(told, ld=kept_symbols(told.ld, symbol_bits(told)))
        assert there_and_back(told) == told
        assert there_and_back(kept) == kept


def words_and_widths() -> st.SearchStrategy[tuple[bytes, bytes, int, int, int]]:
    """Return a strategy for the arguments of `pack_pairs`.

    Symbols and gaps are together in words or apart. Often there are no valid pairs, or more than the index keeps.
    """
    symbols = st.builds(int.__lshift__, st.integers(0, 511), st.integers(0, 10)) | st.integers(0, 2**19 - 1)
    words = st.lists(st.tuples(symbols, st.integers(0, 40) | st.integers(0, 2**13 - 1)), max_size=40).map(
        lambda pairs: np.array([a << 13 | b for a, b in pairs], dtype="<u4").tobytes()
    )
    steps = st.lists(st.tuples(symbols, st.integers(0, 130)), max_size=40).map(
        lambda pairs: (np.array([a & 0xFFFF for a, _ in pairs], dtype="<u2").tobytes(), bytes(b for _, b in pairs))
    )
    whole = st.tuples(words | st.binary(max_size=9), st.binary(max_size=1)), st.tuples(st.just(19), st.integers(9, 19))
    apart = steps | st.tuples(st.binary(max_size=9), st.binary(max_size=4)), st.tuples(st.just(16), st.integers(9, 16))
    return st.one_of(
        st.builds(lambda pairs, bits, low: (*pairs, *bits, low), *each, st.integers(0, 5)) for each in (whole, apart)
    )


@given(words_and_widths())
def test_pairs_are_packed_as_the_reference_packs_them(given_pairs: tuple[bytes, bytes, int, int, int]) -> None:
    ld, gaps, *widths = given_pairs
    packed = native.pack_pairs(ld, gaps, *widths)
    assert packed == ld_compact.pack_pairs(ld, gaps, *widths)
    if packed is not None:
        assert ld_compact.unpack_pairs(packed, *widths) == (ld, gaps)


def pairs_bytes() -> st.SearchStrategy[bytes]:
    """Return a strategy for the count of a few pairs and bytes that may hold them."""
    return st.builds(lambda count, rest: bytes((0, count)) + rest, st.integers(0, 9), st.binary(max_size=60))


@settings(max_examples=300)
@given(
    st.binary(max_size=90), st.tuples(*[st.integers(0, 300)] * 3), st.tuples(*[st.integers(0, 9)] * 4), pairs_bytes()
)
def test_any_bytes_are_a_text_part_for_both_or_for_none(
    data: bytes, large: tuple[int, ...], small: tuple[int, ...], pairs: bytes
) -> None:
    head = b"".join(bytes((number & 0x7F | 0x80, number >> 7)) for number in (*large, *small))
    for packed in (data, *(bytes((*range(8), flags)) + head + bytes(sum(small[:2])) + pairs for flags in range(8))):
        told = []
        for unpack in (native.unpack_text, unpack_text):
            try:
                told.append(unpack(packed, 0))
            except ValueError as error:
                told.append(str(error))
        assert told[0] == told[1]


@pytest.mark.parametrize("label", ["fine", "compact"])
def test_a_text_part_is_read_as_the_reference_reads_it_up_to_every_byte(label: str) -> None:
    scheme = preset(label, KEY)
    packed = pack_text(scheme.kept(Signer(scheme, KEY).sign(Document(id="a", text=text(90, 1), observed_at=NOW))))
    assert native.unpack_text(b"xyz" + packed, 3) == unpack_text(packed, 0)
    for end in range(len(packed)):
        for unpack in (native.unpack_text, unpack_text):
            with pytest.raises(ValueError, match="expected"):
                unpack(packed[:end], 0)


@pytest.mark.parametrize("arguments", [(), (b"",), ("", 0), (b"", "0"), (b"", -1), (b"", 1), (b"x" * 40, 41)])
def test_what_is_no_record_is_refused(arguments: tuple[object, ...]) -> None:
    with pytest.raises((TypeError, ValueError)):
        native.unpack_text(*arguments)


@pytest.mark.parametrize("widths", [(19, 15, 6), (19, 20, 2), (16, 17, 2), (16, 8, 2), (0, 0, 2), (32, 15, 2)])
def test_widths_that_do_not_fit_are_refused(widths: tuple[int, int, int]) -> None:
    with pytest.raises(ValueError, match="symbols of 19 or 16 bits"):
        native.pack_pairs(b"\0\0\0\0", b"", *widths)


@given(st.binary(max_size=40), st.binary(max_size=40), st.text(min_size=1, max_size=8))
def test_any_bytes_come_back(ld: bytes, gaps: bytes, name: str) -> None:
    signature = replace(_plain(), ld=ld, gaps=gaps, id=name, collection=name, raw_digest=b"r" * 16)
    assert there_and_back(signature) == signature


@given(st.tuples(*[st.integers(0, 2**40)] * 5), st.booleans())
def test_any_counts_come_back(counts: tuple[int, ...], spaceless: bool) -> None:
    n_bytes, characters, words, shingles, rate = counts
    signature = replace(_plain(), n_bytes=n_bytes, characters=characters, words=words, shingles=shingles, rate=rate)
    assert there_and_back(replace(signature, spaceless=spaceless)) == replace(signature, spaceless=spaceless)


def test_records_of_equal_texts_end_alike() -> None:
    """Nothing that belongs to the document is in the text part, and the text part is the end."""
    signature = _plain()
    other = replace(
        signature,
        id="b" * 40,
        collection="c",
        lineage="l",
        url="u",
        source="s",
        labels={"k": "v"},
        raw_digest=b"r" * 16,
        observed_at_ms=7,
        origin=Origin("t", 3, 2**40),
        degraded=("charset_replaced",),
    )
    assert pack_text(signature) == pack_text(other)
    for each in (signature, other):
        assert pack_signature(each).endswith(pack_text(signature))


def _plain() -> Signature:
    digest = bytes(range(16))
    return Signature("test-1", "default", "a", digest, digest, 0, 1, 1, 1, 1, False, b"\1", 16, b"", b"", b"")


@pytest.mark.parametrize("texts", [(b"", b""), (b"", b"abc"), (b"abcdefgh", b"abcdefgh"), (bytes(9_000), bytes(8_000))])
def test_patches_of_edge_cases(texts: tuple[bytes, bytes]) -> None:
    assert patched(texts[0], native.patch(*texts)) == texts[1]
