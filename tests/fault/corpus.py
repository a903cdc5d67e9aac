"""Seeded documents whose relations are planted, none taken from elsewhere."""

import json
import math
import random
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import count, cycle
from typing import NamedTuple

MARK = "zqx"
"""Stands in every third word of every text, so that a text which leaks anywhere is seen."""

_SHORTEST_BYTES, _LONGEST_BYTES = 200, 100_000
_WORD_BYTES = 8
_FIRST = datetime(2024, 1, 1, tzinfo=UTC)
_SECONDS = 30_000_000  # within which documents are observed


class Sent(NamedTuple):
    """Key and value of one record of `documents`."""

    key: bytes | None
    value: bytes | None


@dataclass(frozen=True)
class _Base:
    """A document that others are made from."""

    name: str
    words: list[str]
    collection: str


def corpus(documents: int, seed: int) -> list[Sent]:
    """That many documents in random order, the same for the same seed.

    60 % unrelated, 10 % exact copies, 10 % with 1 to 10 % of the words edited, 5 % passages, 5 % versions (some under
    one id), 2 % unchanged recrawls, 3 % rearranged, 3 % overlapping, 2 % short or empty. A document that is stated
    again under its own id has no other relatives: which of its states those would meet is a matter of order.
    """
    made = _Made(seed)
    bases = [made.base(f"doc-{seed}-{number}") for number in range(max(10, documents * 60 // 100))]
    tenth = len(bases) // 10
    updated, recrawled, others = bases[:tenth], bases[tenth : 2 * tenth], bases[2 * tenth :]
    shares: list[tuple[int, list[_Base], Callable[[_Base], None]]] = [
        (10, others, made.copy),
        (10, others, made.edit),
        (5, others, made.passage),
        (3, others[: max(1, documents // 100)], made.version),
        (2, updated, made.update),
        (2, recrawled, made.recrawl),
        (3, others, made.rearrange),
        (3, others, made.overlap),
        (2, others, made.short),
    ]
    for percent, pool, make in shares:
        turns = cycle(made.draw.sample(pool, len(pool)))
        for _ in range(documents * percent // 100):
            make(next(turns))
    made.draw.shuffle(made.sent)
    return made.sent


class _Made:
    """The documents made so far, with the ways to make more."""

    def __init__(self, seed: int) -> None:
        self.draw = draw = random.Random(seed)
        self.sent: list[Sent] = []
        self._vocabulary = [_word(draw) for _ in range(20_000)]
        self._names = (f"more-{seed}-{number}" for number in count())

    def base(self, name: str) -> _Base:
        size = math.exp(self.draw.uniform(math.log(_SHORTEST_BYTES), math.log(_LONGEST_BYTES)))
        base = _Base(name, self._words(int(size / _WORD_BYTES)), self.draw.choice(["news", "wire"]))
        self._add(base, base.words, id=name)
        return base

    def copy(self, base: _Base) -> None:
        self._add(base, base.words)

    def edit(self, base: _Base) -> None:
        self._add(base, self._edited(base.words, self.draw.uniform(0.01, 0.1)))

    def passage(self, base: _Base) -> None:
        length = int(len(base.words) * self.draw.uniform(0.1, 0.5))
        start = self.draw.randrange(len(base.words) - length)
        self._add(base, base.words[start : start + length])

    def version(self, base: _Base) -> None:
        self._add(base, self._edited(base.words, 0.2), url=f"https://site.example/{base.name}")

    def update(self, base: _Base) -> None:
        self._add(base, self._edited(base.words, 0.1), id=base.name, observed_at=_time(_SECONDS))

    def recrawl(self, base: _Base) -> None:
        self._add(base, base.words, id=base.name, observed_at=_time(_SECONDS))

    def rearrange(self, base: _Base) -> None:
        size = len(base.words) // 6
        parts = [base.words[start : start + size] for start in range(0, len(base.words), size)]
        self.draw.shuffle(parts)
        self._add(base, [word for part in parts for word in part])

    def overlap(self, base: _Base) -> None:
        half = len(base.words) // 2
        self._add(base, base.words[:half] + self._words(half))

    def short(self, base: _Base) -> None:
        self._add(base, [*self._words(self.draw.randrange(4)), "\n"])

    def _add(self, base: _Base, words: list[str], **fields: str) -> None:
        """One of ten leaves its time to its record; some leave their id to the key, some have none at all."""
        key: bytes | None = (fields.get("url") or fields.get("id") or next(self._names)).encode()
        if self.draw.random() < 0.9:
            fields.setdefault("observed_at", _time(self.draw.randrange(_SECONDS)))
        if not fields.keys() & {"id", "url"} and self.draw.random() < 0.1:
            key = None
        text = {"text": " ".join(words), "collection": base.collection}
        self.sent.append(Sent(key, json.dumps(text | fields).encode()))

    def _words(self, number: int) -> list[str]:
        return self.draw.choices(self._vocabulary, k=number)

    def _edited(self, words: list[str], share: float) -> list[str]:
        changed = list(words)
        for place in self.draw.sample(range(len(words)), int(len(words) * share)):
            changed[place] = self.draw.choice(self._vocabulary)
        return changed


def _word(draw: random.Random) -> str:
    letters = "".join(draw.choices("abcdefghijklmnoprstuvwy", k=draw.randrange(4, 9)))
    return letters + (MARK if draw.random() < 1 / 3 else "")


def _time(seconds: int) -> str:
    return (_FIRST + timedelta(seconds=seconds)).isoformat()
