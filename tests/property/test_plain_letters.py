"""Any text can be read in plain letters."""

from hypothesis import given
from hypothesis import strategies as st

from nearstream.streams.fingerprints.plain_letters import plain_letters

CODE_POINTS = st.one_of(
    st.characters(),
    st.characters(categories=["Cs"]),
    st.sampled_from("aeo\u0430\u0435\u043e\u03bf\u00ad\u200b\u200d\u064b\u0623\u0e01 \n5-"),
)
TEXTS = st.text(CODE_POINTS, max_size=60)


@given(TEXTS)
def test_nothing_is_added_to_a_text(text: str) -> None:
    assert len(plain_letters(text)) <= len(text)


@given(TEXTS)
def test_ascii_letters_between_ascii_letters_remain(text: str) -> None:
    start, end = "plain words at the start. ", " plain words at the end."
    read = plain_letters(start + text + end)
    assert (read.startswith(start), read.endswith(end)) == (True, True)


@given(TEXTS, st.integers(0, 60))
def test_an_invisible_character_changes_nothing(text: str, place: int) -> None:
    assert plain_letters(text[:place] + "\u2060" + text[place:]) == plain_letters(text + "\u2060")
