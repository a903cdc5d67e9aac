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
    """What the documents of a case are made of."""

    prose: Prose  # real text, never twice
    draw: random.Random  # where all choices come from
    pairs: int  # how many pairs to make

    def words(self, count: int) -> list[str]:
        """Return that many words of real paragraphs."""
        return [word for paragraph in self.prose.paragraphs(count) for word in paragraph][:count]


@dataclass(frozen=True)
class Expected:
    """Two documents of which a person expects to be told."""

    older: Text  # the document that arrives first
    newer: Text  # The one that arrives later. It may be another state of the older one, with its id.
    place: str = ""  # text of the newer document that the answer has to point at, if it has to


@dataclass(frozen=True)
class Stream:
    """Documents in order of arrival, and what a person says of them."""

    texts: list[Text]  # the documents
    expected: list[Expected]  # pairs of which a person expects to be told
    apart: Sequence[frozenset[str]] = ()  # pairs of ids that share text, and of which a person expects to hear nothing


@dataclass(frozen=True)
class Told:
    """What was said of an expected pair."""

    pair: Expected  # the pair
    # The relation of their event, or of the verdict if both are in one family or states of one document. Empty if
    # nothing was said of them.
    relation: str
    event: PairEvent | None  # their event, if there was one

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
    """One figure of a case: the share of answers that a person calls right."""

    name: str  # what is checked
    goal: float  # the least share
    # Returns the share and how many answers were judged, from the answers, and the share of the pairs apart of which
    # something was said.
    share: Callable[[Sequence[Told], Figure], Figure]


@dataclass(frozen=True)
class Case:
    """One case of a kind of documents."""

    number: int  # cases of one number are variants of each other
    name: str  # what the documents are
    person: str  # what a person says of the pairs
    make: Callable[[Material], Stream]  # makes the stream
    checks: tuple[Check, ...]  # what is checked
    most_false: float | None = None  # the most events about other pairs for each document, None if that is no goal


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
