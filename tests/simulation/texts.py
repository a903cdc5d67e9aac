"""Made-up documents whose true relations are known, and the judge that knows them."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import blake2b
from random import Random
from typing import NamedTuple

from nearstream.streams.matching.protocol.case import Case
from nearstream.streams.matching.protocol.choosing import covering
from nearstream.streams.matching.protocol.decision import Decision, KeyMatch, Pair, founder_of
from nearstream.streams.matching.protocol.known import Known
from nearstream.streams.store.messages import BAND, DIGEST, Join
from nearstream.streams.store.registration import Order, Put, Removal

PARTITIONS = 4


class Text(NamedTuple):
    """A text: those of one cluster are copies, equal ones exact copies, those of one template related."""

    cluster: int
    variant: int
    template: int


class Record(NamedTuple):
    """A record of `signatures`. Without a text it is a removal."""

    partition: int
    offset: int
    doc: str
    text: Text | None
    observed_ms: int
    again: int = -1  # offset of the record that it repeats, because a signer was cut off. -1: of none

    @property
    def number(self) -> int:
        """The number of the state."""
        return (self.offset + 1) * PARTITIONS + self.partition

    @property
    def order(self) -> Order:
        """The place of the state among those of its document."""
        sent = self.offset if self.again < 0 else self.again
        return Order(self.observed_ms, self.partition, sent, version(self.text) if self.text else b"")

    @property
    def message(self) -> Put | Removal:
        """What the store is told."""
        name = self.doc.encode().ljust(9, b"\0")
        if self.text is None:
            return Removal(self.number, name, self.partition, self.offset)
        return Put(self.number, name, self.order, 0, repr(tuple(self.text)).encode())


@dataclass(frozen=True)
class World:
    """The rules of a schedule."""

    chain: bool = False  # copies are not transitive: clusters lie on a line, and neighbours are copies

    def words(self, text: Text) -> bytes:
        """Return the keys of the words of a text."""
        keys: list[object] = [("b", text.cluster, i) for i in range(4) if i != text.variant % 5]
        if self.chain:  # neighbours share keys, although a copy of a copy need not be a copy
            near = (text.cluster, text.cluster + 1)
            keys = [("b", cluster, i) for cluster in near for i in range(3) if i != text.variant % 4]
        return b"".join(BAND + key(each) for each in (*keys, ("own", *text), ("t", text.template)))

    def is_copy(self, one: Text, other: Text) -> bool:
        """Return whether two texts are copies."""
        return abs(one.cluster - other.cluster) <= (1 if self.chain else 0)

    def is_related(self, one: Text, other: Text) -> bool:
        """Return whether two texts are related."""
        return self.is_copy(one, other) or one.template == other.template


def named(text: Text) -> bytes:
    """Return the digest key of a text."""
    return DIGEST + key(("x", *text))


def version(text: Text) -> bytes:
    """Return the version of a text."""
    return key(("v", *text))


@lru_cache(None)
def key(name: object) -> bytes:
    """Return a key of 8 bytes."""
    return blake2b(repr(name).encode(), digest_size=8).digest()


@lru_cache(None)
def text_of(record: bytes) -> Text:
    """Return the text of a stored record."""
    return Text(*eval(record.decode()))  # noqa: S307 - our own repr


class Met(NamedTuple):
    """An earlier document after the comparison."""

    number: int
    text: Text
    is_exact: bool
    is_copy: bool
    comes_before: bool

    @property
    def has_all(self) -> bool:
        """Whether nothing of the arriving document is missing in it."""
        return self.is_exact

    @property
    def rank(self) -> tuple[bool, bool, bool, int]:
        """The sort key of counterparts."""
        return not self.is_exact, not self.is_copy, not self.comes_before, self.number


@dataclass
class Oracle:
    """A judge that knows the truth, and gives hints that are right, wrong or dead."""

    world: World
    draw: Random
    docs: dict[int, str]
    orders: dict[int, Order]
    guesses: set[int] = field(default_factory=set)

    def compare(self, case: Case, numbers: Sequence[int], known: Known) -> list[Met]:
        """Return the related ones of some states."""
        own: Text = case.document.text
        texts = [(number, text_of(known.records[number])) for number in numbers]
        return [
            Met(number, text, text == own, self.world.is_copy(own, text), self.comes_before(number, case.number))
            for number, text in texts
            if self.world.is_related(own, text)
        ]

    def comes_before(self, one: int, other: int) -> bool:
        """Return whether a state comes before another one in the order that never changes."""
        return self.orders[one] < self.orders[other]

    def decision(self, case: Case, founder: int, known: Known) -> Decision:
        """Return the family and all related documents, the best one first."""
        pairs, others = [], [each for each in case.compared.values() if self.docs[each.number] != case.document.doc]
        others.sort(key=lambda each: each.rank)
        has_all = covering(others, known.views)
        for each in sorted(others, key=lambda each: each is not has_all):
            number = each.number
            if number in case.yields:
                continue
            view = known.views[number]
            family = founder_of(view.decision) if view.decision is not None else number
            relation = "near_duplicate" if each.is_copy else "overlap"
            pairs.append(Pair(number, family, relation, True, family != founder, KeyMatch(1, 1)))
        return Decision(founder, tuple(pairs[:64]), is_redundant=has_all is not None)

    def shortened(self, case: Case, founder: bytes) -> bytes:
        """Return no shorter record."""
        return b""

    def join(self, case: Case, founder: int, known: Known) -> Join:
        """Return the message with which a document joins a family."""
        keeps = known.founder(case.registered.former) == founder and not case.is_late
        links = b"".join([pair.link for pair in case.decision.links]) if case.decision else b""
        is_full = not case.left and not case.is_late
        instead = case.registered.former if keeps else 0
        is_dead = case.is_dead or case.is_late
        return Join(founder, case.number, is_dead, is_full, links, instead, founder.to_bytes(16, "big"), 0)

    def hint(self, case: Case) -> int:
        """Return a guess, which may be a document of its batch."""
        others = sorted(self.guesses - {case.number})
        self.guesses.add(case.number)
        return 0 if self.draw.random() < 0.3 or not others else self.draw.choice(others)

    def learn(self, case: Case, representative: int) -> None:
        """Remember whom hints may name."""
        self.guesses.add(representative)
