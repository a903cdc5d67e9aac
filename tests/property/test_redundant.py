"""Text that is nowhere else is never called redundant.

Streams are made of a few texts of several scripts, and of edits of them. What is left of a text without case, marks of
punctuation and layout says exactly whether another text has all of it.
"""

import unicodedata
from collections.abc import Callable
from datetime import timedelta
from random import Random

import pytest

from nearstream.schemas.documents.document import Document
from nearstream.streams.matching.matcher import Matcher
from nearstream.streams.signing.scheme import preset
from nearstream.streams.signing.signer import Signer
from nearstream.streams.store.store import local_store
from tests.support.made_up import KEY, NOON

SCRIPTS = (
    "abcdefghijklmnopqrstuvwxyz",
    "\u0430\u0431\u0432\u0433\u0434\u0436\u0437\u043a\u043b\u043c\u043d\u043f",  # Cyrillic
    "\u0905\u0915\u0916\u0917\u091a\u091f\u0921\u0924\u092a\u092e\u0930\u0932",  # Devanagari
    "\u0e01\u0e02\u0e04\u0e07\u0e08\u0e0a\u0e14\u0e17\u0e19\u0e1a\u0e1b\u0e21",  # Thai
    "\u4e00\u4e8c\u4e09\u5341\u5341\u5c71\u5ddd\u7530\u4e2d\u6587\u5b57\u5929",  # Chinese
    "\u2801\u2803\u2809\u2819\u2811\u280b\u281b\u2813\u280a\u281a\u2805\u2807",  # Braille
    "\U00031350\U00031351\U00031352\U00031353\U00031354",  # of Unicode 15
    "0123456789",
)
STREAMS, DOCUMENTS = 12, 25


def word(draw: Random, letters: str) -> str:
    return "".join(draw.choices(letters, k=draw.randint(2, 8)))


def text(draw: Random) -> list[str]:
    """Return words of a script, also few of them or many, and also with one passage that comes several times."""
    letters = draw.choice(SCRIPTS[:6])
    passage = [word(draw, letters) for _ in range(draw.choice((9, 30, 120, 600)))]
    return ["heading", *(passage * draw.choice((1, 1, 3)))]


def one_letter(draw: Random, words: list[str]) -> list[str]:
    at = draw.randrange(len(words))
    changed = list(words[at])
    changed[draw.randrange(len(changed))] = draw.choice(draw.choice(SCRIPTS))
    return [*words[:at], "".join(changed), *words[at + 1 :]]


def one_sentence(draw: Random, words: list[str]) -> list[str]:
    at, letters = draw.randrange(len(words)), draw.choice(SCRIPTS)
    return [*words[:at], *(word(draw, letters) for _ in range(draw.randint(1, 12))), *words[at:]]


def moved(draw: Random, words: list[str]) -> list[str]:
    at = draw.randrange(len(words))
    return words[at:] + words[:at]


def repeated(_: Random, words: list[str]) -> list[str]:
    return [*words, *words]


def shorter(draw: Random, words: list[str]) -> list[str]:
    return words[: max(8, draw.randrange(len(words)))]


def as_it_is(_: Random, words: list[str]) -> list[str]:
    return words


EDITS: tuple[Callable[[Random, list[str]], list[str]], ...] = (
    one_letter, one_letter, one_sentence, one_sentence, moved, repeated, shorter, as_it_is,
)  # fmt: skip


def laid_out(draw: Random, words: list[str]) -> str:
    """Join words to a text whose case, punctuation and layout say nothing."""
    joined = "".join(each + draw.choice((" ", " ", " ", "\n", ", ")) for each in words)
    return joined.upper() if draw.random() < 0.3 else joined


def content(words: str) -> str:
    """Return the letters, digits and signs of a text."""
    folded = unicodedata.normalize("NFKC", words).casefold()
    return "".join(each for each in folded if unicodedata.category(each)[0] in "LNMSC" and not each.isspace())


@pytest.mark.parametrize("seed", range(STREAMS))
async def test_text_that_is_nowhere_else_is_never_redundant(seed: int) -> None:
    draw, scheme = Random(seed), preset("fine", KEY)
    signer, matcher = Signer(scheme, KEY), Matcher(local_store(), scheme, KEY)
    frame = text(draw)[:60]
    earlier = [text(draw), text(draw), frame + text(draw) + frame]
    sent: dict[str, str] = {}
    for number in range(DOCUMENTS):
        words = draw.choice(EDITS)(draw, draw.choice(earlier)) if number else earlier[0]
        earlier.append(words)
        sent[f"d{number}"] = laid_out(draw, words)
        at = NOON + timedelta(seconds=number)
        one = signer.sign(Document(id=f"d{number}", text=sent[f"d{number}"], observed_at=at))
        said = (await matcher.match(one)).verdict
        assert said is not None
        if said.redundant is True:
            assert said.of is not None
            assert sent[said.of.id].split() == sent[said.id].split()
