"""Signs that mean something: which changes of a sign a person sees, and which are punctuation."""

from datetime import UTC, datetime

import pytest

from nearstream.schemas.documents.document import Document
from nearstream.streams.fingerprints.hashing import HashKey
from nearstream.streams.signing.scheme import preset
from nearstream.streams.signing.signer import Signer, signs

KEY = HashKey.public()
EQUAL = [
    ('Well, he said: "no"!', "well he said no"),
    ("well-known (old) things", "well known [old] things"),
    ("x=5", "X  =\n5"),
    ("a = b < c", "a\n= b\n< c"),
    ("and / or", "and\n/ or"),
    ("> a quote\n>> inside", "a quote\ninside"),
    ("Title\n=====\ntext", "Title\ntext"),
    ("**bold** _word_", "bold word"),
    ("- one\n* two", "one\ntwo"),
    ("1. first\n2. second", "1) first\n2) second"),
    ("wow!!! what?!", "wow what"),
    ("end. 5 people", "end, 5 people"),
    ("it was \u22125", "it was -5"),
    ("2\u20133", "2-3"),
    ("1\u2019000", "1'000"),
    ("\uf0b7 one \uf0b7 two", "• one • two"),
]


@pytest.mark.parametrize(("one", "other"), EQUAL)
def test_punctuation_and_layout_mean_nothing(one: str, other: str) -> None:
    assert signs(one) == signs(other)


def test_signs_are_frozen() -> None:
    assert (
        signs("It costs €1,240.50 (-5 %), if A != b && c >= 3 \u2013 ✓ → 🟢, 2\u20133.")
        == "€1,2.5-5%!=b&&c>=3✓→🟢-3".encode()
    )


def digests(text: str, label: str) -> tuple[bytes, bytes]:
    signed = Signer(preset(label, KEY), KEY).sign(
        Document(id="a", text=text, observed_at=datetime(2026, 3, 2, tzinfo=UTC))
    )
    return signed.digest[:8], signed.digest[8:]


@pytest.mark.parametrize("label", ["fine", "mail"])
def test_signs_change_the_first_half_of_the_digest(label: str) -> None:
    one, other, without = (digests(f"it costs {sign}5 today", label) for sign in ("€", "$", ""))
    assert len({one[0], other[0], without[0]}) == 3
    assert one[1] == other[1] == without[1]
    assert digests("no sign at all", label) == digests("No sign, at all.", label)


def test_other_presets_count_no_signs() -> None:
    assert digests("it costs €5", "noise") == digests("it costs $5", "noise")
