"""Slots on a real server beside those in memory, for the adversary."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from typing import Any, ClassVar

from redis import Redis

from nearstream.streams.store.limits import IndexLimits
from nearstream.streams.store.part import Part
from nearstream.streams.store.store import Call, Shape
from nearstream.workers.redis.server.functions import function_library
from nearstream.workers.redis.server.layout import CHUNKED_KINDS, GONE, GROUP, KeyKind, StoreLayout
from nearstream.workers.redis.store.calls import LaneCalls
from tests.simulation.texts import PARTITIONS

_EPOCH = b"an epoch"


class OnRedis(Part):
    """A slot in memory whose calls are made on a server too, where both have to answer alike.

    What it holds can be read in memory. To copy it copies what the server holds, so its newest calls can be lost.
    """

    client: ClassVar[Redis]
    prefix: ClassVar[bytes]
    names: ClassVar[Iterator[int]]

    def __init__(self, limits: IndexLimits) -> None:
        """Begin an empty slot that no other has the name of."""
        super().__init__(limits)
        self.slot = next(self.names)
        self.layout = StoreLayout(self.prefix, _EPOCH, Shape(1, PARTITIONS), dict.fromkeys(CHUNKED_KINDS, 3), limits)
        self.client.hset(self.layout.tag(self.slot) + KeyKind.FACTS, "layout", self.layout.packed)
        self._watch_expiry()

    def _watch_expiry(self) -> None:
        """Let the server forget a record when the adversary lets it expire in memory."""
        self._calls = LaneCalls(self.layout)
        drop_in_memory = self.history.drop_record

        def drop_record(number: int) -> None:
            drop_in_memory(number)
            tag, group = self.layout.tag(self.slot), self.layout.group(number)
            field = str(number // PARTITIONS % GROUP)
            packed = self.client.hget(tag + KeyKind.STATES + group, field)
            assert isinstance(packed, bytes)
            self.client.hset(tag + KeyKind.STATES + group, field, bytes([packed[0] | GONE]) + packed[1:])  # type: ignore[arg-type]  # bytes
            self.client.hdel(tag + KeyKind.RECORDS + group, field)

        self.history.drop_record = drop_record  # type: ignore[method-assign]

    def _keys(self) -> list[bytes]:
        return list(self.client.scan_iter(match=self.layout.tag(self.slot).decode() + "*", count=1_000))

    def __getstate__(self) -> dict[str, Any]:
        """Return what it holds, in memory and on the server."""
        own = {name: value for name, value in vars(self).items() if name not in ("history", "_calls")}
        history = {name: value for name, value in vars(self.history).items() if name != "drop_record"}
        return own | {"past": history, "dump": [(key, self.client.dump(key)) for key in self._keys()]}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Go back to what it held."""
        dump, past = state.pop("dump"), state.pop("past")
        vars(self).update(state)
        self.history = Part(IndexLimits(retention_seconds=0)).history
        vars(self.history).update(past)
        self._watch_expiry()
        for key in self._keys():
            self.client.delete(key)
        for key, value in dump:
            self.client.restore(key, 0, value)

    def call(self, name: str, items: Sequence[Any]) -> list[Any]:
        """Make a call in memory and on the server."""
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
        assert answers == super().call(name, items), (name, items)
        return answers


@contextmanager
def slots_on(client: Redis, prefix: bytes) -> Iterator[type[Part]]:
    """Yield the class of slots on a server, and delete these at the end."""
    client.function_load(function_library()[1], replace=True)
    OnRedis.client, OnRedis.prefix, OnRedis.names = client, prefix, count()
    yield OnRedis
    for key in client.scan_iter(match=prefix.decode() + "*", count=1_000):
        client.delete(key)
