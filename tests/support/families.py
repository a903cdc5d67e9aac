"""Documents whose families are known, and ways to match them."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from random import Random

from msgspec.structs import replace as with_fields

from nearstream.schemas.codec import encode_event
from nearstream.schemas.signature import Origin, Signature
from nearstream.streams.index.candidate import Candidate
from nearstream.streams.index.family import Settled, Settlement
from nearstream.streams.matcher import Arrival, Matched
from nearstream.streams.signing.scheme import Keys
from nearstream.streams.store.limits import Admission, Admitted, IndexState, IndexUnavailableError
from nearstream.streams.store.store import Position
from tests.support.matching import WORDS, prose, signed

BODY = prose(1)


def edited(text: str, seed: int, edits: int = 1) -> str:
    """Return the text with some of its words replaced."""
    random, words = Random(seed), text.split()
    for at in random.sample(range(len(words)), edits):
        words[at] = random.choice(WORDS)
    return " ".join(words)


def rewritten(text: str, seed: int, count: int) -> str:
    """Return the text with this many words at its end replaced, all of them."""
    words = text.split()
    return " ".join([*words[:-count], *Random(seed).choices(WORDS, k=count)])


def campaign(copies: int, seed: int = 1) -> list[Signature]:
    """Return copies of one body that differ in a word each, about a minute apart."""
    return [signed(f"m{number}", edited(prose(seed), 100 + number), number) for number in range(copies)]


def arrivals(records: Sequence[Signature | str], first: int = 0, partition: int = 0) -> list[Arrival]:
    """Return consecutive records of a partition. A text is the id of a document to be removed."""
    return [
        Arrival(f"news/{one}", None, Position(partition, at), removed_at_ms=1_790_000_000_000 + at)
        if isinstance(one, str)
        else Arrival(one.document_key, one, Position(partition, at))
        for at, one in enumerate(records, first)
    ]


def real_traffic(random: Random, count: int, names: int) -> list[Signature | str]:
    """Return documents of few bodies: copies, edits, passages, others, updates, repeats, lineages, and removals."""
    records: list[Signature | str] = []
    last: dict[str, Signature] = {}
    for minute in range(count):
        name = f"d{random.randrange(names)}"
        if random.random() < 0.08:
            records.append(name)
            continue
        if name in last and random.random() < 0.25:
            again = with_fields(last[name], observed_at_ms=last[name].observed_at_ms + 60_000 * minute)
        else:
            lineage = random.choice([None, None, None, f"l{random.randrange(3)}"])
            again = signed(name, _some_text(random), minute + random.randrange(3), lineage)
        last[name] = with_fields(again, origin=Origin("nearstream.documents.v1", 0, minute))
        records.append(last[name])
    return records


def _some_text(random: Random) -> str:
    body, kind = prose(random.randrange(4)), random.random()
    if kind < 0.5:
        return edited(body, random.randrange(30), random.choice((1, 2, 3)))
    if kind < 0.65:
        return rewritten(body, random.randrange(30), random.choice((60, 120, 200)))
    if kind < 0.75:
        return " ".join(body.split()[100:280])
    return body if kind < 0.85 else prose(100 + random.randrange(50))


def lines(matched: Matched) -> list[bytes]:
    """Return what is sent, byte for byte."""
    verdict = [] if matched.verdict is None else [encode_event(matched.verdict)]
    return [*verdict, *map(encode_event, matched.events)]


def partition(families: dict[str, int]) -> set[frozenset[str]]:
    """Return the families as sets of ids, from the family of each id."""
    return {frozenset(one for one, own in families.items() if own == family) for family in families.values()}


def family_of(index: Store, numbers: dict[str, int]) -> dict[str, int]:
    """Return the family that the index counts each document in now, by id."""
    return {one: index.family_of(number) for one, number in numbers.items()}


class Interleaved:
    """An index that lets other workers go first before each call, as a random number generator decides."""

    def __init__(self, index: Store, random: Random) -> None:
        self._index = index
        self._random = random

    async def _wait(self) -> None:
        for _ in range(self._random.choice((0, 1, 1, 2, 3, 6, 12))):
            await asyncio.sleep(0)

    async def admit(self, batch: Sequence[Admission]) -> Sequence[Admitted]:
        await self._wait()
        return await self._index.admit(batch)

    async def enter(self, batch: Sequence[tuple[int, Admission]]) -> Sequence[tuple[Candidate, ...]]:
        await self._wait()
        return await self._index.enter(batch)

    async def settle(self, batch: Sequence[Settlement]) -> Sequence[Settled]:
        await self._wait()
        return await self._index.settle(batch)

    async def look_up(self, keys: Keys, limit: int) -> Sequence[Candidate]:
        return await self._index.look_up(keys, limit)

    async def state(self) -> IndexState:
        return IndexState.READY


class Shaky:
    """An index that loses some answers after it has done what was asked."""

    def __init__(self, index: Store, random: Random, share: float) -> None:
        self.lost = 0
        self._index = index
        self._random = random
        self._share = share

    def _lose(self) -> None:
        if self._random.random() < self._share:
            self.lost += 1
            raise IndexUnavailableError("the answer was lost")

    async def admit(self, batch: Sequence[Admission]) -> Sequence[Admitted]:
        answers = await self._index.admit(batch)
        self._lose()
        return answers

    async def enter(self, batch: Sequence[tuple[int, Admission]]) -> Sequence[tuple[Candidate, ...]]:
        answers = await self._index.enter(batch)
        self._lose()
        return answers

    async def settle(self, batch: Sequence[Settlement]) -> Sequence[Settled]:
        answers = await self._index.settle(batch)
        self._lose()
        return answers

    async def look_up(self, keys: Keys, limit: int) -> Sequence[Candidate]:
        return await self._index.look_up(keys, limit)

    async def state(self) -> IndexState:
        return IndexState.READY


async def until_done(match: Callable[[], Awaitable[list[Matched]]]) -> list[Matched]:
    """Repeat a call until the index answers."""
    for _ in range(100):
        try:
            return await match()
        except IndexUnavailableError:
            continue
    raise AssertionError("the index answers at last")
