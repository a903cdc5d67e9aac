"""Masking in pieces gives what the pattern gives on a whole text."""

from unicodedata import normalize

from hypothesis import given
from hypothesis import strategies as st

from nearstream.streams.fingerprints.normalize import without_unsafe
from nearstream.streams.fingerprints.parameters import TextRules
from nearstream.streams.fingerprints.rewriting import _PERSONAL, _masked, mask_personal

RULES = TextRules(masks="mail/1")
PIECES = st.sampled_from(
    [
        *("Dear", "dear", "hello", "hi", "this", "hey", "hallo", "liebe", "lieber", "believe", "sehr geehrte", "frau"),
        *(
            "bonjour",
            "cher",
            "ch\u00e8re",
            "teacher",
            "hola",
            "estimado",
            "ciao",
            "gentile",
            "beste",
            "geachte",
            "anna",
        ),
        *("http://", "https://www.", "www.", "a.example", "/x?u=", "@", "a@b.example", "0", "12345678", "a8f3-22kd"),
        *(" ", " ", "  ", "\t", "\n", "\n", "\r\n", "\r", ",", ":", "!", ".", "-", "_", "+", "%", "'", '"', "<", "#"),
        *("\u00a0", "\u2028", "\x0b", "\x1c", "\u0130", "\u00df", "\u0301", "\u0663", "\u65e5", "a" * 70, "1" * 70),
    ]
)


@given(st.lists(PIECES, max_size=60).map("".join))
def test_pieces_are_masked_as_the_whole(text: str) -> None:
    lower = (text if text.isascii() else normalize("NFKC", without_unsafe(text, RULES.mark_run))).lower()
    assert mask_personal(text, RULES) == _PERSONAL.sub(_masked, lower)
