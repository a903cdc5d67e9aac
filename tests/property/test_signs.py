"""The signs that C finds are those of the reference, in any text."""

from hypothesis import given
from hypothesis import strategies as st

from nearstream.streams.native import native
from nearstream.streams.signing.signer import _RAISED, _UNREAD, unread
from tests.reference import signs as reference

SIGNS = "+-<=>!$%&*/^.,:'()[]? \n\tab_12\u00a3\u00d7\u066b\u2012\u2019\u20ac\u2190\u2500\u25a0\uff0b\U0001f7e2"
SIGNS += "\u0e3f\u2800\ue000\uf0b7\U0001e2ff\U0010fffd"
TEXTS = st.text(st.one_of(st.sampled_from(SIGNS), st.characters()), max_size=40)


@given(TEXTS)
def test_c_finds_the_same_signs(text: str) -> None:
    assert native.signs(text.encode("utf-8", "surrogatepass")).decode("utf-8", "surrogatepass") == reference.found(text)


UNREAD = "12 a\u00b2\u00bd\u2074\u2155\u00e9\U0001d11e\U0001d800\U0001f7e2\U0002ebf0"


@given(st.text(st.one_of(st.sampled_from(UNREAD), st.characters()), max_size=40))
def test_what_is_not_read_is_found_wherever_it_is(text: str) -> None:
    assert unread(text) == " ".join([*_UNREAD.findall(text), *_RAISED.findall(text)]).encode("utf-8", "surrogatepass")
