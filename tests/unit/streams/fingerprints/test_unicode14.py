"""The ranges of code points newer than the frozen Unicode version."""

import unicodedata

from nearstream.streams.fingerprints.unicode_tables import NEWER

ASSIGNED_IN_14 = 284_278  # including private use, surrogates and controls


def test_28111_code_points_are_newer() -> None:
    assert sum(last - first + 1 for first, last in NEWER) == 28_111


def test_the_ranges_are_ascending_with_room_between() -> None:
    bounds = [bound for first, last in NEWER for bound in (first, last + 1)]
    assert bounds == sorted(set(bounds))


def test_what_is_not_newer_is_as_much_as_unicode_14_has_assigned() -> None:
    newer = {code for first, last in NEWER for code in range(first, last + 1)}
    assigned = sum(unicodedata.category(chr(code)) != "Cn" for code in range(0x110000) if code not in newer)
    assert assigned == ASSIGNED_IN_14
