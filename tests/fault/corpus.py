"""Generated documents with planted relations, reproducible by their seed."""

import json
import math
import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from hashlib import blake2b
from itertools import count, cycle
from typing import NamedTuple

from nearstream.schemas.documents.record import ProducerRecord

MARK = "zqx"
"""Stands in every third word of every text, so that a text which leaks anywhere is seen."""

_SHORTEST_BYTES, _LONGEST_BYTES = 200, 100_000
_WORD_BYTES = 8
_FIRST = datetime(2024, 1, 1, tzinfo=UTC)
_SECONDS = 30_000_000  # the documents are observed within this time
_STORM = 100  # most documents in one storm
_STORM_WORDS = 400
# What happens to the founder after half of its storm: nothing, it is removed, edited a little, or gets another text.
_FATES = ("stays", "removed", "edited", "replaced")


class Sent(NamedTuple):
    """Key and value of one record of `documents`."""

    key: bytes | None
    value: bytes | None


def traced(topic: str, sent: Iterable[Sent]) -> list[ProducerRecord]:
    """Return documents as records of a topic.

    Each has a trace of its own. It is copied to all that its arrival causes, so events tell which arrival caused them.
    """
    return [ProducerRecord(topic, *each, [("traceparent", _trace(each))]) for each in sent]


def _trace(sent: Sent) -> bytes:
    return f"00-{blake2b(repr(sent).encode(), digest_size=16).hexdigest()}-{1:016x}-01".encode()


@dataclass(frozen=True)
class _Base:
    """A document from which others are made."""

    name: str
    words: list[str]
    collection: str


def corpus(documents: int, seed: int) -> list[Sent]:
    """Return this many documents in random order, reproducible by the seed.

    54 % unrelated, 10 % exact copies, 10 % with 1 to 10 % of the words edited, 5 % passages, 5 % versions (some under
    one id), 2 % unchanged recrawls, 3 % rearranged, 3 % overlapping, 2 % short or empty, 6 % in storms of copies. Apart
    from the founders of storms, a document that is sent again under its own id has no other relatives, because the
    order would decide which of its states they match.
    """
    made = _Made(seed)
    bases = [made.base(f"doc-{seed}-{number}") for number in range(max(10, documents * 54 // 100))]
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
    in_storms = documents * 6 // 100
    size = min(_STORM, max(4, in_storms // len(_FATES)))
    for number in range(in_storms // size):
        made.mix_in(made.storm(f"storm-{seed}-{number}", size, _FATES[number % len(_FATES)]))
    return made.sent


def storm(documents: int, seed: int) -> list[Sent]:
    """Return one family of this many documents, in order: the founder, then exact and nearly exact copies of it."""
    return _Made(seed).storm(f"storm-{seed}", documents, "stays")


class _Made:
    """The documents made so far, with methods that add more."""

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
        url = f"https://site.example/{base.name}"
        self._add(base, self._edited(base.words, 0.2), id=next(self._names), url=url)

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

    def storm(self, name: str, size: int, fate: str) -> list[Sent]:
        """Return a document and its copies in order, of which every other one differs in one word."""
        before, self.sent = self.sent, []
        base = _Base(name, self._words(_STORM_WORDS), "default")
        self._add(base, base.words, id=name)
        for number in range(1, size):
            if number == size // 2:
                self._meet(base, fate)
            words = self._edited(base.words, 1 / _STORM_WORDS) if number % 2 else base.words
            self._add(base, words, id=f"{name}-{number}")
        made, self.sent = self.sent, before
        return made

    def _meet(self, base: _Base, fate: str) -> None:
        if fate == "removed":
            self.sent.append(Sent(base.name.encode(), None))
        elif fate != "stays":
            words = self._edited(base.words, 1 / _STORM_WORDS if fate == "edited" else 0.7)
            self._add(base, words, id=base.name, observed_at=_time(_SECONDS))

    def mix_in(self, sent: list[Sent]) -> None:
        """Spread records over all others in their own order."""
        places = set(self.draw.sample(range(len(self.sent) + len(sent)), len(sent)))
        own, others = iter(sent), iter(self.sent)
        self.sent = [next(own if place in places else others) for place in range(len(self.sent) + len(sent))]

    def _add(self, base: _Base, words: list[str], **fields: str) -> None:
        """Add a document with these words and fields.

        One of ten takes its time from its record. Some take their id from the record key, and some have no id at all.
        """
        key: bytes | None = (fields.get("id") or next(self._names)).encode()
        if self.draw.random() < 0.9:
            fields.setdefault("observed_at", _time(self.draw.randrange(_SECONDS)))
        if "id" not in fields and self.draw.random() < 0.1:
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
