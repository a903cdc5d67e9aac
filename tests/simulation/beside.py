"""Slots on a real server or in a file beside those in memory, for the adversary."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar, Protocol

from redis import Redis

from nearstream.streams.store.limits import IndexLimits
from nearstream.streams.store.part import Part
from nearstream.streams.store.store import Call, Shape
from nearstream.workers.redis.server.functions import function_library
from nearstream.workers.redis.server.layout import CHUNKED_KINDS, GONE, GROUP, KeyKind, StoreLayout
from nearstream.workers.redis.store.calls import LaneCalls
from nearstream.workers.sqlite.file import IndexFile
from tests.simulation.texts import PARTITIONS

_EPOCH = b"an epoch"


class Other(Protocol):
    """A slot in another store."""

    def call(self, name: str, items: Sequence[Any]) -> list[Any]:
        """Make a call."""

    def drop_record(self, number: int) -> None:
        """Let the record of a state expire."""

    def held(self) -> Any:  # noqa: ANN401 - each store has its own
        """Return what it holds."""

    def go_back(self, held: Any) -> None:  # noqa: ANN401 - each store has its own
        """Hold what it held."""


class Beside(Part):
    """A slot in memory whose calls are made in another store too, where both have to answer alike.

    What it holds can be read in memory. To copy it copies what both hold, so its newest calls can be lost.
    """

    make: ClassVar[Callable[[int, IndexLimits], Other]]
    others: ClassVar[list[Other]]

    def __init__(self, limits: IndexLimits) -> None:
        """Begin an empty slot that no other has the name of."""
        super().__init__(limits)
        self.slot = len(self.others)
        self.others.append(type(self).make(self.slot, limits))
        self._watch_expiry()

    def _watch_expiry(self) -> None:
        """Let the other store forget a record when the adversary lets it expire in memory."""
        drop_in_memory, drop_there = self.history.drop_record, self.others[self.slot].drop_record

        def drop_record(number: int) -> None:
            drop_in_memory(number)
            drop_there(number)

        self.history.drop_record = drop_record  # type: ignore[method-assign]

    def __getstate__(self) -> dict[str, Any]:
        """Return what it holds, in memory and in the other store."""
        own = {name: value for name, value in vars(self).items() if name != "history"}
        history = {name: value for name, value in vars(self.history).items() if name != "drop_record"}
        return own | {"past": history, "held": self.others[self.slot].held()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Go back to what it held."""
        held, past = state.pop("held"), state.pop("past")
        vars(self).update(state)
        self.history = Part(IndexLimits(retention_seconds=0)).history
        vars(self.history).update(past)
        self.others[self.slot].go_back(held)
        self._watch_expiry()

    def call(self, name: str, items: Sequence[Any]) -> list[Any]:
        """Make a call in both stores."""
        answers = self.others[self.slot].call(name, items)
        assert answers == super().call(name, items), (name, items)
        return answers


class OnRedis:
    """A slot on a server."""

    def __init__(self, client: Redis, prefix: bytes, slot: int, limits: IndexLimits) -> None:
        """Begin an empty slot."""
        self.client, self.slot = client, slot
        self.layout = StoreLayout(prefix, _EPOCH, Shape(1, PARTITIONS), dict.fromkeys(CHUNKED_KINDS, 3), limits)
        self._calls = LaneCalls(self.layout)
        client.hset(self.layout.tag(slot) + KeyKind.FACTS, "layout", self.layout.packed)

    def drop_record(self, number: int) -> None:
        """Let the record of a state expire."""
        tag, group = self.layout.tag(self.slot), self.layout.group(number)
        field = str(number // PARTITIONS % GROUP)
        packed = self.client.hget(tag + KeyKind.STATES + group, field)
        assert isinstance(packed, bytes)
        self.client.hset(tag + KeyKind.STATES + group, field, bytes([packed[0] | GONE]) + packed[1:])  # type: ignore[arg-type]  # bytes
        self.client.hdel(tag + KeyKind.RECORDS + group, field)

    def _keys(self) -> list[bytes]:
        return list(self.client.scan_iter(match=self.layout.tag(self.slot).decode() + "*", count=1_000))

    def held(self) -> list[tuple[bytes, Any]]:
        """Return what it holds."""
        return [(key, self.client.dump(key)) for key in self._keys()]

    def go_back(self, held: list[tuple[bytes, Any]]) -> None:
        """Hold what it held."""
        self._calls = LaneCalls(self.layout)
        for key in self._keys():
            self.client.delete(key)
        for key, value in held:
            self.client.restore(key, 0, value)

    def call(self, name: str, items: Sequence[Any]) -> list[Any]:
        """Make a call."""
        answers: list[Any] = [None] * len(items)
        left, former = list(range(len(items))), set[int]()
        while left:
            call, found = Call(self.slot, name, [items[place] for place in left], 0), list[Any]()
            for command in self._calls.commands(call, former):
                found += self._calls.answers(command, self.client.execute_command(*command.arguments))
            for place, answer in zip(left, found, strict=True):
                answers[place] = answer
            left = [place for place in left if name == "register" and isinstance(answers[place], int)]
            former |= {answers[place] for place in left}
        return answers


class InFile:
    """A slot in a file. To hold what it holds is to commit that, and to go back is what a kill does."""

    def __init__(self, path: Path, limits: IndexLimits) -> None:
        """Make a file."""
        self.path, self.limits = path, limits
        self.index = self._opened()

    def _opened(self) -> IndexFile:
        return IndexFile(self.path, "a scheme", self.limits, Shape(1, PARTITIONS))

    def drop_record(self, number: int) -> None:
        """Let the record of a state expire."""
        self.index.part.history.drop_record(number)

    def held(self) -> None:
        """Commit what was done."""
        self.index.commit()

    def go_back(self, held: None) -> None:
        """Lose what was not committed, and open the file again."""
        self.index.close()
        self.index = self._opened()

    def call(self, name: str, items: Sequence[Any]) -> list[Any]:
        """Make a call."""
        return self.index.part.call(name, items)


@contextmanager
def slots_on(client: Redis, prefix: bytes) -> Iterator[type[Part]]:
    """Yield the class of slots on a server, and delete these at the end."""
    client.function_load(function_library()[1], replace=True)
    Beside.others, Beside.make = [], lambda slot, limits: OnRedis(client, prefix, slot, limits)
    yield Beside
    for key in client.scan_iter(match=prefix.decode() + "*", count=1_000):
        client.delete(key)


@contextmanager
def slots_in(folder: Path) -> Iterator[type[Part]]:
    """Yield the class of slots in files of a folder, and close these at the end."""
    files: list[InFile] = []

    def made(slot: int, limits: IndexLimits) -> InFile:
        files.append(InFile(folder / f"{slot}.db", limits))
        return files[-1]

    Beside.others, Beside.make = [], made
    yield Beside
    for each in files:
        each.index.close()
