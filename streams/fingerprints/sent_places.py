"""Map places in a normal form to places in the original text."""

import re
from bisect import bisect_left
from collections.abc import Iterable
from itertools import accumulate

from nearstream.streams.fingerprints.normalize import normal_forms
from nearstream.streams.fingerprints.parameters import TextRules
from nearstream.streams.fingerprints.rewriting import rewritten

_PIECE = re.compile(r"\S{1,64}")


def sent_places(text: str, places: Iterable[tuple[int, int]], rules: TextRules) -> list[tuple[int, int]]:
    """Return places in the original text, in whole words of at most 64 characters.

    Each word is normalized alone. Where letters of two words compose, places are off by a few characters.

    Args:
        text: The text as it was sent.
        places: Places `[start, end)` in characters of its normal form.
        rules: The rules of the normal form.
    """
    pieces = list(_PIECE.finditer(text))
    forms = normal_forms([rewritten(piece[0], rules) for piece in pieces], rules)
    sizes = [form.characters + (form.characters > 0) for form in forms]
    starts = [0, *accumulate(sizes)]
    middles = [start + size / 2 for start, size in zip(starts, sizes, strict=False)]
    found = []
    for start, end in places:
        first, last = bisect_left(middles, start), bisect_left(middles, end) - 1
        if first <= last:
            found.append((pieces[first].start(), pieces[last].end()))
    return found
