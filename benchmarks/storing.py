"""Where a benchmark keeps what it matches: in memory, or in a Redis of its own.

The figures are equal on both, but for times, because one engine decides over either.
"""

import argparse
import asyncio
import tempfile
import threading
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import count
from pathlib import Path
from typing import Any, TypeVar

from nearstream.schemas.documents.signature import Signature
from nearstream.streams.fingerprints.hashing import HashKey
from nearstream.streams.matching.arriving import Arrival, Arriving, message_of
from nearstream.streams.signing.scheme import Scheme
from nearstream.streams.store.limits import IndexLimits
from nearstream.streams.store.messages import Query
from nearstream.streams.store.record import unpack_signature
from nearstream.streams.store.store import Call, Store, Transport, local_store
from nearstream.workers.redis.index.index import RedisIndex
from nearstream.workers.redis.server.address import IndexAddress
from tests.devstack.redis import redis_server
from tests.devstack.server import running
from tests.support.stores import through as carried

PLACES = ("memory", "redis")
BATCH = 200
_LIMITS = IndexLimits()
Make = Callable[[Scheme, IndexLimits], Store]
T = TypeVar("T")


def _in_memory(_: Scheme, limits: IndexLimits) -> Store:
    return local_store(limits)


_MAKE: ContextVar[Make] = ContextVar("make", default=_in_memory)


def add_option(parser: argparse.ArgumentParser) -> None:
    """Let a command say where documents are kept."""
    parser.add_argument("--through", choices=PLACES, default="memory", help="where documents are kept (default memory)")


def new_store(scheme: Scheme, limits: IndexLimits = _LIMITS) -> Store:
    """Return an empty store where `through` says, by default in memory."""
    return _MAKE.get()(scheme, limits)


@contextmanager
def through(place: str) -> Iterator[None]:
    """Let new stores be in memory, or in a Redis that runs as long as this context."""
    if place == "memory":
        yield
        return
    with tempfile.TemporaryDirectory() as folder, running(redis_server(Path(folder))) as server, _Loop() as loop:
        token = _MAKE.set(loop.stores(f"redis://{server.address}/0"))
        try:
            yield
        finally:
            _MAKE.reset(token)


def as_stored(signatures: Mapping[str, Signature], scheme: Scheme, key: HashKey) -> dict[str, Signature]:
    """Return signatures as a new store gives them back, by the names that they have."""
    return asyncio.run(_as_stored(signatures, scheme, key))


async def _as_stored(signatures: Mapping[str, Signature], scheme: Scheme, key: HashKey) -> dict[str, Signature]:
    store, found = new_store(scheme, IndexLimits(retention_seconds=0)), dict[str, Signature]()
    names = list(signatures)
    for start in range(0, len(names), BATCH):
        some = names[start : start + BATCH]
        messages = [
            message_of(
                Arrival(signatures[name].document_key, signatures[name]),
                Arriving(scheme.kept(signatures[name]), scheme.keys(signatures[name], key), scheme),
                store.number(None),
            )
            for name in some
        ]
        answers = await store.register(messages)
        views = await store.fetch([Query(answer.number, record=True) for answer in answers])
        for name, view in zip(some, views, strict=True):
            if view is None or view.record is None:
                raise AssertionError(f"{name!r}: what was registered has a record")
            found[name] = unpack_signature(view.record, scheme.name, view.order.version, view.order.observed_ms)
    return found


class _Loop:
    """An event loop of its own, in which all connections live. Each benchmark runs several loops."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)
        self._opened: list[RedisIndex] = []
        self._names = count()

    def __enter__(self) -> "_Loop":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        for index in self._opened:
            self._run(index.close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def stores(self, url: str) -> Make:
        """Return what makes a store on this server."""

        def make(scheme: Scheme, limits: IndexLimits) -> Store:
            address = IndexAddress(url, f"bench{next(self._names)}", scheme.name, limits)
            index = self._run(RedisIndex.open(address, partitions=1, may_create=True))
            self._opened.append(index)
            return carried(index.store(), lambda transport: _Elsewhere(self._loop, transport))

        return make

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()


class _Elsewhere:
    """Carries calls to another event loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop, transport: Transport) -> None:
        self._loop, self._transport = loop, transport

    async def all(self, calls: Sequence[Call]) -> Sequence[Sequence[Any]]:
        """Return the replies to calls."""
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(self._all(calls), self._loop))

    async def _all(self, calls: Sequence[Call]) -> Sequence[Sequence[Any]]:
        return await self._transport.all(calls)
