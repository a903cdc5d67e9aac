"""Places of a normal form in the text as it was sent."""

import pytest

from nearstream.streams.fingerprints.hashing import HashKey
from nearstream.streams.fingerprints.normalize import normalize
from nearstream.streams.fingerprints.parameters import TextRules
from nearstream.streams.fingerprints.rewriting import rewritten
from nearstream.streams.fingerprints.sent_places import sent_places
from nearstream.streams.signing.scheme import preset

RULES = TextRules()
BEFORE = "The  mayor said -- on Monday (!) -- that the bridge is open.\n\n"
NEW = "*** A “second” lorry, however, has not been found. ***"
AFTER = "\n\n\tPolice close the road at 6:30 p.m.; see p. 4."


@pytest.mark.parametrize("new", [NEW, "Ein zweiter Lastwagen wurde — wie üblich — nicht gefunden…", "第二辆卡车"])
def test_a_part_of_a_normal_form_is_found_in_the_text_as_it_was_sent(new: str) -> None:
    text = BEFORE + new + AFTER
    form = normalize(text, RULES).data.decode()
    start = len(normalize(BEFORE, RULES).data.decode()) + 1
    place = (start, start + normalize(new, RULES).characters)
    assert normalize(form[slice(*place)], RULES).data == normalize(new, RULES).data
    ((first, last),) = sent_places(text, [place], RULES)
    assert normalize(text[first:last], RULES).data == normalize(new, RULES).data
    assert (first >= len(BEFORE), last <= len(BEFORE + new)) == (True, True)


LATIN = "“The harbour office,” — it said; will close its north-gate on Tuesday (at 9:30, see https://a.example/x?y=1)… "
SCRIPTS = {
    "Latin": LATIN,
    "Greek": "Το γραφείο του λιμανιού θα κλείσει τη βόρεια πύλη την Τρίτη, επειδή ο γερανός χρειάζεται νέο καλώδιο. ",  # noqa: RUF001
    "Chinese": "去年秋天，港务局宣布北门将于星期二关闭，因为起重机 A 12 需要更换新的缆索。\n卡车应当走东边的坡道。",  # noqa: RUF001
    "Thai": "สำนักงานท่าเรือจะปิดประตูทิศเหนือในวันอังคารเพราะเครนต้องใช้สายเคเบิลใหม่ ",
    "Korean": "항만 사무소는 크레인에 새 케이블이 필요하기 때문에 화요일에 북문을 닫을 것입니다. ",
    "Arabic": "سيغلق مكتب الميناء بوابته الشمالية يوم الثلاثاء لأن الرافعة تحتاج إلى كابل جديد. ",
    "Hindi": "बंदरगाह कार्यालय मंगलवार को अपना उत्तरी द्वार बंद करेगा क्योंकि क्रेन को नई केबल चाहिए। ",
    "decomposed": "Die Größe der Zufahrt a\u0308ndert sich u\u0308ber Nacht — nai\u0308ve Fahrer. ",
    "signs": "| a | b | -- * c * ~~~ \u200b ... d — e - f\t\n\n\n",
}


@pytest.mark.parametrize("scheme", ["fine", "mail"])
@pytest.mark.parametrize("script", SCRIPTS)
def test_a_place_deep_in_a_long_text_of_any_script_is_right_to_a_word(script: str, scheme: str) -> None:
    rules, text = preset(scheme, HashKey.public()).text, SCRIPTS[script] * 120
    whole = normalize(rewritten(text, rules), rules).characters
    for share in (0.2, 0.55, 0.9):
        at = text.index(SCRIPTS[script], int(len(text) * share))
        place = normalize(rewritten(text[:at], rules), rules).characters + 1
        ((start, end),) = sent_places(text, [(place, whole)], rules)
        letters = sum(letter.isalnum() for letter in text[min(start, at) : max(start, at)])
        most = 6 if rules.masks else 2  # what is masked depends on what stands beside it
        assert letters <= most, (start, at)
        assert sum(letter.isalnum() for letter in text[end:]) <= (most if rules.masks else 0)


def test_places_of_a_mail_count_in_its_text_with_its_notices() -> None:
    rules = preset("mail", HashKey.public()).text
    notice = (
        "This e-mail is confidential. If you are not the intended recipient, please delete it and notify the sender."
    )
    text = f"The crane is late.\n\n{notice}\n\nIt comes on Friday with the new cable.\n\n-- \nA. Person\nHarbour office"
    own = normalize("The crane is late.", rules).characters + 1
    ((start, end),) = sent_places(text, [(own, own + 38)], rules)
    assert text[start:end] == "It comes on Friday with the new cable."


def test_a_place_without_a_whole_piece_is_left_out() -> None:
    assert sent_places("one two", [(1, 1), (0, 7)], RULES) == [(0, 7)]
    assert sent_places("", [(0, 3)], RULES) == []
