"""Texts that resemble each other: storms of copies, campaigns of mails, histories of files, edited copies."""

import random
from collections.abc import Iterator
from functools import cache

from benchmarks.texts import english

MAIL_WORDS = 350
VARIANTS = 8
_OWN_OF_A_VARIANT = 0.45  # words of a variant that no other has, in one piece
_REVISED = 0.03  # words that a revision changes, in a few places
_PLACES = 3
_FIRST = ("Ada", "Boris", "Chen", "Dora", "Emil", "Fatima", "Grace", "Hugo", "Ines", "Jonas", "Kira", "Liam")
_LAST = ("Adler", "Berg", "Costa", "Dietrich", "Evans", "Fischer", "Garcia", "Hansen", "Ito", "Jansen", "Klein")


@cache
def vocabulary() -> list[str]:
    """Return the distinct words of the examples, without runs of dashes, which unrelated texts would share."""
    return sorted({word for word in english(500_000).split() if word.isalpha()})


def drawn(draw: random.Random, count: int) -> list[str]:
    """Draw words in random order."""
    return draw.choices(vocabulary(), k=count)


def unique(count: int, words: int, seed: int) -> Iterator[str]:
    """Yield texts that have nothing in common."""
    draw = random.Random(f"unique {seed}")
    for _ in range(count):
        yield " ".join(drawn(draw, words))


def mails(count: int, variants: int) -> Iterator[str]:
    """Yield personalised mails of one campaign: one body, or several that share half of their words.

    A mail has about 360 words, of which it shares all but 10 with the others of its variant.
    """
    draw = random.Random(f"mails {variants}")
    shared = drawn(draw, MAIL_WORDS)
    own = round(_OWN_OF_A_VARIANT * MAIL_WORDS) if variants > 1 else 0
    bodies = [[*shared[: MAIL_WORDS - own], *drawn(draw, own)] for _ in range(variants)]
    for number in range(count):
        body = draw.choice(bodies)
        name = f"{draw.choice(_FIRST)} {draw.choice(_LAST)}"
        code = f"{draw.randrange(10**8):08}"
        middle = len(body) // 3
        yield (
            f"Dear {name}, {' '.join(body[:middle])} your code is {code} {' '.join(body[middle:])}"
            f" https://mail.example/{number:06}/leave"
        )


def revisions(documents: int, states: int) -> Iterator[str]:
    """Yield the states of several files in turn: each changes a little of the one before it."""
    draw = random.Random("revisions")
    files = [drawn(draw, 700) for _ in range(documents)]
    for _ in range(states):
        for words in files:
            yield " ".join(words)
            revise(words, draw)


def revise(words: list[str], draw: random.Random) -> None:
    """Change 3 % of the words, in three places."""
    length = max(round(_REVISED * len(words) / _PLACES), 1)
    for _ in range(_PLACES):
        start = draw.randrange(len(words) - length)
        words[start : start + length] = drawn(draw, draw.randrange(length // 2 + 1, 2 * length))


def edited_in_one_place(text: str, share: float, seed: int) -> str:
    """Replace a share of the words, all in one place."""
    draw = random.Random(f"edited {seed}")
    words = text.split()
    length = round(share * len(words))
    start = draw.randrange(len(words) - length + 1)
    words[start : start + length] = drawn(draw, length)
    return " ".join(words)
