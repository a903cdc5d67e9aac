"""Places of a normal form in the text as it was sent."""

import pytest

from nearstream.streams.fingerprints.normalize import normalize
from nearstream.streams.fingerprints.parameters import TextRules
from nearstream.streams.fingerprints.sent_places import sent_places

RULES = TextRules()
BEFORE = "The  mayor said -- on Monday (!) -- that the bridge is open.\n\n"
NEW = "*** A “second” lorry, however, has not been found. ***"
AFTER = "\n\n\tPolice close the road at 6:30 p.m.; see p. 4."


@pytest.mark.parametrize("new", [NEW, "Ein zweiter Lastwagen wurde — wie üblich — nicht gefunden…", "第二辆卡车"])
def test_a_part_of_a_normal_form_is_found_in_the_text_as_it_was_sent(new: str) -> None:
    text = BEFORE + new + AFTER
    form = normalize(text, RULES).data.tobytes().decode()
    start = len(normalize(BEFORE, RULES).data.tobytes().decode()) + 1
    place = (start, start + normalize(new, RULES).characters)
    assert normalize(form[slice(*place)], RULES).data.tobytes() == normalize(new, RULES).data.tobytes()
    ((first, last),) = sent_places(text, [place], RULES)
    assert normalize(text[first:last], RULES).data.tobytes() == normalize(new, RULES).data.tobytes()
    assert (first >= len(BEFORE), last <= len(BEFORE + new)) == (True, True)


def test_a_place_without_a_whole_piece_is_left_out() -> None:
    assert sent_places("one two", [(1, 1), (0, 7)], RULES) == [(0, 7)]
    assert sent_places("", [(0, 3)], RULES) == []
