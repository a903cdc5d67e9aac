"""Edit distance of texts with a few small edits, by the formulas that native/estimates/isolated.h gives."""

from dataclasses import dataclass
from math import sqrt

from nearstream.streams.fingerprints.parameters import LD_WINDOW_BYTES
from tests.reference.alignment import Alignment, total
from tests.reference.scattered import WIDE, ScatteredEdits

_MATCHES = 4
_RATIO = 0.8
_PLACES = 8

# A place holds one edit if it is not wider than this, and one more for each further word of it. A place that is wider
# still is a changed passage, as is one that makes the text longer or shorter by more than a word.
_RATES_OF_ONE = 2
_WORD = 12.0
_RATES, _BYTES = 3, 25
_GROWN_MAX = 9

# A replaced word costs this, and more by this share of what it makes the text longer or shorter.
_COST = 4.2
_GROWN_SHARE = 0.6
_DEVIATION = 2.5
_PASSAGE_DEVIATION = 3.5
_TOUCHED = 42  # windows of both texts that touch a replaced word

# Of texts whose edits leave them as long as they were, some have words or numbers that were replaced by others of their
# length, and so do .13 of words that were replaced by any. They have up to 9 bytes, of which .9 differ. Others have
# single characters that were changed. Words that were inserted all move the texts one way by 3 bytes or more, as .22 of
# replaced words do.
_EQUAL_ODDS, _EQUAL_LENGTH, _FIELD_ODDS = 4.0, 0.13, 0.5
_FIELD_BYTES, _FIELD_SHARE = 9, 0.9
_ONE_WAY_ODDS, _ONE_WAY = 8.0, 0.22
_INSERTED = 3
_DOUBT = 0.05
_Z_90 = 1.645


@dataclass(frozen=True)
class Place:
    """A place where two texts differ, in bytes."""

    room: int  # bytes between the windows around it, in the text that has fewer of them there
    grown: int  # By how much the longer text has more bytes there. 0: not by more than positions are known.


def isolated_edits(alignment: Alignment) -> ScatteredEdits | None:
    """Return the distance of two texts with a few small edits, or None for other texts."""
    shorter, longer = alignment.shorter, alignment.longer
    if alignment.matches < _MATCHES or shorter.n_bytes < _RATIO * longer.n_bytes:
        return None
    seen = places(alignment)
    width = shorter.n_bytes / shorter.characters
    if len(seen) > _PLACES or width >= WIDE:
        return None
    found = seen or [Place(0, longer.n_bytes - shorter.n_bytes)]
    most = _RATES * shorter.rate + _BYTES
    if any(place.room > most or abs(place.grown) > _GROWN_MAX for place in found):
        return None
    unseen = (1 - 1 / shorter.rate) ** _TOUCHED if seen else 0.0
    return _likelier(found, shorter.rate, width, 1 / (1 - unseen))


def places(alignment: Alignment) -> list[Place]:
    """Return the places where symbols are lost or the texts have moved against each other."""
    grain = max(1, alignment.shorter.grain, alignment.longer.grain)
    found = []
    for lost, one, other in zip(alignment.lost.tolist(), *alignment.gaps.tolist(), strict=True):
        grown = other - one if abs(other - one) >= grain else 0
        if lost or grown:
            found.append(Place(max(0, min(one, other) - LD_WINDOW_BYTES), grown))
    return found


def passage_doubt(alignment: Alignment) -> float:
    """Return the error of the distance of texts with few changed passages, in bytes, and 0 for other texts."""
    seen = places(alignment)
    if len(seen) > _PLACES:
        return 0.0
    edits = total([max(1.0, place.room / _WORD) for place in seen])
    return _Z_90 * _PASSAGE_DEVIATION * sqrt(edits) * (alignment.shorter.n_bytes / alignment.shorter.characters)


def _likelier(found: list[Place], rate: int, width: float, more: float) -> ScatteredEdits:
    """Return the mean cost of replaced words and of other edits that leave the same traces."""
    own = [max(1.0, (place.room - _RATES_OF_ONE * rate) / _WORD) for place in found]
    grown = [abs(place.grown) for place in found]
    edits = total(own)
    each = [n * _COST * width + _GROWN_SHARE * moved for n, moved in zip(own, grown, strict=True)]
    words = total([max(cost, float(moved)) for cost, moved in zip(each, grown, strict=True)]) * more
    spread = _Z_90 * _DEVIATION * width * sqrt(edits) * more
    least = total([max(n * width, float(moved)) for n, moved in zip(own, grown, strict=True)])
    if not any(grown):
        return _of_equal_length(found, own, rate, width, more)
    if all(place.grown >= _INSERTED for place in found) or all(place.grown <= -_INSERTED for place in found):
        other, odds = total([float(moved) for moved in grown]), _ONE_WAY_ODDS * _ONE_WAY ** len(found)
    else:
        return ScatteredEdits(words, min(least, words - spread), words + spread, single=False)
    chance = odds / (1 + odds)
    return _mean(words, other, spread, chance)


def _of_equal_length(found: list[Place], own: list[float], rate: int, width: float, more: float) -> ScatteredEdits:
    """Return the distance of edits of equal length, judged by the width of each place."""
    of_fields, of_characters, fields, kept = 1.0, 1.0, 0.0, 1 - 1 / rate
    for place, edits in zip(found, own, strict=True):
        room, likely, bytes_of_one = max(1, place.room), 0.0, 0.0
        for n_bytes in range(1, min(room, _FIELD_BYTES) + 1):
            chance = (room - n_bytes + 1) * kept ** (room - n_bytes)
            likely += chance / _FIELD_BYTES
            bytes_of_one += n_bytes * chance / _FIELD_BYTES
        of_characters *= room * kept ** (room - 1)
        of_fields *= likely
        is_one = edits == 1 and likely > 0
        fields += _FIELD_SHARE * bytes_of_one / likely if is_one else edits * _COST * width
    odds = (_EQUAL_ODDS * _EQUAL_LENGTH ** len(found) + _FIELD_ODDS) * of_fields
    chance = odds / (odds + of_characters) if odds + of_characters > 0 else 1.0
    edits = total(own)
    spread = _Z_90 * _DEVIATION * width * sqrt(edits) * more
    return _mean(fields * more, edits * width * more, spread, chance)


def _mean(words: float, other: float, spread: float, chance: float) -> ScatteredEdits:
    """Return the mean of two readings, of which the first has this chance."""
    value = chance * words + (1 - chance) * other
    return ScatteredEdits(value, min(value, other), words + spread if chance > _DOUBT else value, single=False)
