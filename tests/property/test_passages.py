"""The places of common text equal those of the reference, and C refuses invalid input."""

from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nearstream.streams.estimates.comparing import fields_of, reach_table
from nearstream.streams.estimates.passages import common_text
from nearstream.streams.native import native
from tests.reference import passages as reference
from tests.support.compared import BASE
from tests.support.made_up import sign, words

FIELDS = fields_of(BASE)


def test_the_places_of_the_reference_are_found_of_moved_and_edited_text() -> None:
    text = words(1, 2000)
    parts = [text[start : start + 250] for start in range(0, 2000, 250)]
    moved = [word for number in (3, 0, 5, 1, 7, 2, 6, 4) for word in parts[number]]
    edited = [word if number % 90 else "changed" for number, word in enumerate(text)]
    whole = sign(" ".join(text))
    for each in (moved, edited, text[700:1100], words(2, 500), text):
        other = sign(" ".join(each), "b")
        found = common_text(whole, other)
        assert found == reference.common_text(whole, other) == common_text(other, whole)
        assert bool(found.moved) == (each is moved)
        assert bool(found.in_order) == (found.segment is not None) == (len(set(each) & set(text)) > 400 / 2)


@pytest.mark.parametrize("wrong", [(), FIELDS[:9], (*FIELDS[:8], b"123", b""), (*FIELDS[:7], 3, *FIELDS[8:]), None])
def test_what_is_no_text_is_refused(wrong: object) -> None:
    for both in ((wrong, FIELDS), (FIELDS, wrong)):
        with pytest.raises((TypeError, ValueError)):
            native.common_text(*both, False, reach_table)


def test_other_arguments_are_refused() -> None:
    for reach in (None, lambda rate: None, lambda rate: b""):
        with pytest.raises((TypeError, ValueError)):
            native.common_text(FIELDS, FIELDS, False, reach)
    with pytest.raises(TypeError):
        native.common_text(FIELDS, FIELDS)


@given(st.binary(max_size=300), st.binary(max_size=90), st.sampled_from((0, 1, 8, 64, 1 << 30)), st.booleans())
@settings(max_examples=300)
def test_any_bytes_are_compared_or_refused(ld: bytes, gaps: bytes, rate: int, is_split: bool) -> None:
    packed = (ld[: len(ld) // 2 * 2], gaps) if is_split else (ld[: len(ld) // 4 * 4], b"")
    text = (*FIELDS[:7], rate, *packed)
    for both in ((text, text), (text, FIELDS)):
        with suppress(ValueError):
            in_order, moved, segment, changes = native.common_text(*both, False, reach_table)
            assert len(in_order) % 32 == len(moved) % 32 == len(segment) % 32 == len(changes) % 32 == 0
