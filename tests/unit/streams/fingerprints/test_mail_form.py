"""What is personal in mail is masked, and nothing else."""

import random
import time

import pytest

from nearstream.streams.fingerprints.normalize import normalize
from nearstream.streams.fingerprints.parameters import TextRules
from nearstream.streams.fingerprints.rewriting import mask_personal

RULES = TextRules(masks="mail/1")


def masked(text: str) -> str:
    """Return the normal form of a masked text."""
    return normalize(mask_personal(text, RULES)).data.decode()


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ("See https://mail.example/u?id=9f3c&x=1, now", "see url mail example now"),
        ("www.a.example/path rest", "url a example rest"),
        ("write to Anna.Meyer+x@mail.example.", "write to email"),
        ("Your number is A8F3-22KD-91", "your number is tok"),
        ("7 of 1,234 on page 12a", "0 of 0 0 on page 0a"),
        ("Dear Anna Meyer,\nwe are", "dear name we are"),
        ("Dear Mr. van Dyke: we are", "dear name we are"),
        ("Sehr geehrte Frau Müller,\nwir", "sehr geehrte frau name wir"),
        ("Hi, we are", "hi we are"),
        ("oh dear", "oh dear"),
        ("the hidden dearth of hello-worlds", "the hidden dearth of hello worlds"),
        ("\uff57\uff57\uff57.\uff41.example/x \uff11\uff12", "url a example 0"),
        ("no token: internationalization well-known", "no token internationalization well known"),
    ],
)
def test_what_is_personal_is_masked(text: str, form: str) -> None:
    assert masked(text) == form


PIECES = ["a", "a1", "@", "a@", "http://", "www.", "dear ", "dear a ", "a-", ".", "\xdf\u0323", "\u0301", " \t"]


@pytest.mark.parametrize("piece", PIECES)
def test_masking_takes_linear_time(piece: str) -> None:
    def seconds(size: int) -> float:
        text = piece * (size // len(piece))
        started = time.process_time()
        mask_personal(text, RULES)
        return time.process_time() - started

    short, long = min(seconds(1 << 14) for _ in range(3)), min(seconds(1 << 17) for _ in range(2))
    assert long < 8 * 4 * max(short, 0.002)  # quadratic would be 64 times as long


def test_a_long_line_is_masked_as_short_ones() -> None:
    pieces = ["www.a.example/x?1", "dear john smith,", "a@b.example", "abc-def-12345678", "12", "word", "Hi Bob", "x1"]
    drawn = random.Random(1)
    line = " ".join(drawn.choices(pieces, k=20_000))
    expected = "".join(mask_personal(f"{part}, ", RULES) for part in line.split(", "))
    assert mask_personal(f"{line}, ", RULES) == expected
