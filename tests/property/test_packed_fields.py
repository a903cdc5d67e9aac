"""C finds the keys of the reference, accepts its packed fields, and keeps its bits of them."""

from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nearstream.streams.fingerprints.hashing import HashKey
from nearstream.streams.fingerprints.parameters import KEPT_SYMBOL_BITS
from nearstream.streams.native import native
from nearstream.streams.store.messages import Entry
from nearstream.workers.redis.store import calls
from tests.reference import packed_fields
from tests.reference.ld import LdSignature, kept_symbols, symbol_bits
from tests.reference.minhash import kept_sketch
from tests.support.entered import made_up

KEY = HashKey.public()


def words() -> st.SearchStrategy[bytes]:
    """Return a strategy for LD words, of which many are escapes."""
    gaps = st.sampled_from([0, 1, 2**13 - 2, 2**13 - 1]) | st.integers(0, 2**32 - 1)
    return st.lists(gaps, max_size=20).map(lambda each: np.array(each, dtype="<u4").tobytes()) | st.binary(max_size=9)


@pytest.mark.parametrize(
    ("permutation", "payloads", "width"),
    [(KEY.permutation[1:], b"12", 1), (KEY.permutation, b"12", 0), (KEY.permutation, b"123", 2)],
)
def test_payloads_of_another_width_have_no_keys(permutation: bytes, payloads: bytes, width: int) -> None:
    with pytest.raises(ValueError, match="permutation of 256 bytes, prefix and payloads of this width expected"):
        native.small_keys(permutation, b"", payloads, width)


@given(st.lists(st.integers(0, 3) | st.integers(0, 2**64 - 1), max_size=9), st.booleans())
def test_anchors_ascend_where_the_reference_says(values: list[int], is_sorted: bool) -> None:
    packed = np.array(sorted(values) if is_sorted else values, dtype="<u8").tobytes()
    assert native.ascends(packed) == packed_fields.ascends(packed)


def test_bytes_that_are_no_anchors_are_refused() -> None:
    with pytest.raises(ValueError, match="multiple of 8 bytes"):
        native.ascends(b"1234567")


@given(st.sampled_from([64, 128, 256, 512]), words(), st.booleans(), st.randoms())
def test_an_index_keeps_the_bits_that_the_reference_keeps(size: int, ld: bytes, is_split: bool, random: Random) -> None:
    sketch = random.randbytes(size)
    signature = LdSignature(16, ld, b"1" if is_split else b"")
    stored = symbol_bits(signature)
    if len(ld) % (2 if is_split else 4):
        with pytest.raises(ValueError, match="multiple of"):
            native.kept_parts(sketch, ld, stored, KEPT_SYMBOL_BITS[stored])
    else:
        kept = native.kept_parts(sketch, ld, stored, KEPT_SYMBOL_BITS[stored])
        assert kept == (kept_sketch(sketch), kept_symbols(signature))


@pytest.mark.parametrize(("sketch", "stored", "kept"), [(b"", 19, 16), (bytes(100), 19, 16), (bytes(512), 18, 16)])
def test_what_is_no_sketch_or_no_symbol_is_refused(sketch: bytes, stored: int, kept: int) -> None:
    with pytest.raises(ValueError, match="expected"):
        native.kept_parts(sketch, b"", stored, kept)


@pytest.mark.parametrize("entry", [(1, 2, b"b1234567"), (2**40, 0, b""), (-1, 0, b""), (0, 0, b"c" + bytes(8)), (1, 2)])
def test_what_is_no_entry_is_refused(entry: Entry) -> None:
    layout, _ = made_up(Random(1))
    with pytest.raises((ValueError, TypeError, OverflowError)):
        calls.pack_entries(layout, b"", [entry])
