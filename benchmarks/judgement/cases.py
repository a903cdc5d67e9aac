"""A case: a stream of made documents, what a person says of pairs of them, and how an answer is judged."""

import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from benchmarks.quality.corpus import Text
from benchmarks.stream.prose import Prose
from nearstream.schemas.verdicts.events import PairEvent
from nearstream.streams.fingerprints.normalize import normalize

Place = tuple[int, int]

NAMES = ("Anna Meyer", "Bob Jones", "Carla Rossi", "David Novak", "Emma Silva", "Frank Dubois", "Greta Jansen")


@dataclass(frozen=True)
class Material:
    """What the documents of a case are made of.

    Attributes:
        prose: Real text, never twice.
        draw: Where all choices come from.
        pairs: How many pairs to make.
    """

    prose: Prose
    draw: random.Random
    pairs: int

    def words(self, count: int) -> list[str]:
        """Return that many words of real paragraphs."""
        return [word for paragraph in self.prose.paragraphs(count) for word in paragraph][:count]


@dataclass(frozen=True)
class Expected:
    """Two documents of which a person expects to be told.

    Attributes:
        older: The document that arrives first.
        newer: The one that arrives later. It may be another state of the older one, with its id.
        place: Text of the newer document that the answer has to point at, if it has to.
    """

    older: Text
    newer: Text
    place: str = ""


@dataclass(frozen=True)
class Stream:
    """Documents in order of arrival, and what a person says of them.

    Attributes:
        texts: The documents.
        expected: Pairs of which a person expects to be told.
        apart: Pairs of ids that share text, and of which a person expects to hear nothing.
    """

    texts: list[Text]
    expected: list[Expected]
    apart: Sequence[frozenset[str]] = ()


@dataclass(frozen=True)
class Told:
    """What was said of an expected pair.

    Attributes:
        pair: The pair.
        relation: The relation of their event, or of the verdict if both are in one family or states of one document.
            Empty if nothing was said of them.
        event: Their event, if there was one.
    """

    pair: Expected
    relation: str
    event: PairEvent | None

    @cached_property
    def forms(self) -> tuple[str, str]:
        """Return the normal forms of the older and the newer text."""
        return normal_form(self.pair.older.text), normal_form(self.pair.newer.text)

    @cached_property
    def place(self) -> Place:
        """Return where the normal form of the newer text has the text to point at."""
        wanted = normal_form(self.pair.place)
        start = self.forms[1].find(wanted)
        return start, start + len(wanted)


Judge = Callable[[Told], bool | None]
Figure = tuple[float, int]


@dataclass(frozen=True)
class Check:
    """One figure of a case: the share of answers that a person calls right.

    Attributes:
        name: What is checked.
        goal: The least share.
        share: Returns the share and how many answers were judged, from the answers, and the share of the pairs apart of
            which something was said.
    """

    name: str
    goal: float
    share: Callable[[Sequence[Told], Figure], Figure]


@dataclass(frozen=True)
class Case:
    """One case of a kind of documents.

    Attributes:
        number: Cases of one number are variants of each other.
        name: What the documents are.
        person: What a person says of the pairs.
        make: Makes the stream.
        checks: What is checked.
        most_false: The most events about other pairs for each document, None if that is no goal.
    """

    number: int
    name: str
    person: str
    make: Callable[[Material], Stream]
    checks: tuple[Check, ...]
    most_false: float | None = None


def each(name: str, goal: float, judge: Judge) -> Check:
    """Return the check that judges each expected pair by itself. None leaves a pair out."""

    def judged(told: Sequence[Told], _: Figure) -> Figure:
        answers = [answer for answer in map(judge, told) if answer is not None]
        return (sum(answers) / len(answers) if answers else 0.0), len(answers)

    return Check(name, goal, judged)


def silence(goal: float) -> Check:
    """Return the check that nothing is said of the pairs that a person holds apart."""
    return Check("silent", goal, lambda _, apart: (1 - apart[0], apart[1]))


def related(*relations: str) -> Judge:
    """Return the judge that asks for one of these relations, or for any of them if none is named."""
    return lambda told: told.relation in relations if relations else bool(told.relation)


def in_turn(expected: Iterable[Expected], draw: random.Random, apart: Sequence[frozenset[str]] = ()) -> Stream:
    """Return all older documents in a shuffled order, then all newer ones in another."""
    pairs = list(expected)
    older, newer = [pair.older for pair in pairs], [pair.newer for pair in pairs]
    draw.shuffle(older)
    draw.shuffle(newer)
    return Stream([*older, *newer], pairs, apart)


def couple(number: int, older: str, newer: str, place: str = "") -> Expected:
    """Return two documents with ids of their own as an expected pair."""
    return Expected(Text(f"{number}-older", older), Text(f"{number}-newer", newer), place)


def normal_form(text: str) -> str:
    """Return the normal form of a text."""
    return normalize(text).data.decode()
