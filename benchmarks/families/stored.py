"""What copies cost in the index on a server: bytes, commands, time."""

import asyncio
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from redis import Redis

from benchmarks.families.feeding import BATCH, SCHEME, Fed, feed, signed
from benchmarks.families.texts import edited_in_one_place, mails, unique
from benchmarks.index.growth import Meter
from benchmarks.quality.scoring import Figures
from nearstream.schemas.documents.signature import Signature
from nearstream.streams.store.limits import IndexLimits
from nearstream.streams.store.store import Store
from nearstream.workers.redis.index.index import RedisIndex
from nearstream.workers.redis.server.address import IndexAddress
from tests.devstack.redis import redis_server
from tests.devstack.server import running

WORDS = 700
MAIL_WORDS = 360
_CHANGED = 0.10
_NOT_OURS = ("cmdstat_info", "cmdstat_config|get", "cmdstat_fcall")  # a call of a function is counted by what it calls
_SUMMED = ("bytes", "commands", "server_us", "client_us", "events_per_document", "comparisons_per_document")


@contextmanager
def own_server() -> Iterator[tuple[Redis, str]]:
    """Run a Redis of our own."""
    with tempfile.TemporaryDirectory() as folder, running(redis_server(Path(folder))) as server:
        url = f"redis://{server.address}/0"
        with Redis.from_url(url) as client:
            client.config_set("slowlog-log-slower-than", -1)  # its entries would be counted as bytes of documents
            yield client, url


async def opened(url: str, documents: int) -> RedisIndex:
    """Open a new index."""
    limits = IndexLimits(documents=documents)
    address = IndexAddress(url, "families", SCHEME.name, limits)
    return await RedisIndex.open(address, partitions=1, may_create=True)


async def cost(server: Redis, store: Store, signatures: Sequence[Signature]) -> tuple[Fed, Figures]:
    """Match documents and return what each of them cost."""
    bytes_before, commands_before, meter = _bytes(server), _commands(server), Meter(server)
    meter.start()
    fed = await feed(signatures, store, BATCH)
    meter.stop()
    n = max(len(signatures), 1)
    return fed, {
        "documents": len(signatures),
        "bytes": round((_bytes(server) - bytes_before) / n),
        "commands": round((_commands(server) - commands_before) / n, 1),
        "server_us": round(meter.server_us / n),
        "client_us": round(meter.client_us / n),
        "documents_per_second": round(n / fed.seconds),
        "events_per_document": fed.per_document(len(fed.events)),
        "comparisons_per_document": fed.per_document(fed.comparisons),
    }


def _bytes(server: Redis) -> int:
    return int(server.info("memory")["used_memory_dataset"])


def _commands(server: Redis) -> int:
    return sum(each["calls"] for name, each in server.info("commandstats").items() if name not in _NOT_OURS)


def copies(documents: int) -> Figures:
    """Return the cost of unique documents, of copies of them, and of many copies of one."""
    texts = list(unique(documents, WORDS, 1))
    firsts, few = signed(texts), range(documents // 4)
    kinds = {
        "exact copies, one of each": signed(texts, "exact"),
        "copies with a tenth changed, one of each": signed(
            (edited_in_one_place(text, _CHANGED, at) for at, text in enumerate(texts)), "near"
        ),
        "exact copies of one": signed((texts[0] for _ in few), "same"),
        "copies of one with a tenth changed": signed(
            (edited_in_one_place(texts[0], _CHANGED, at) for at in few), "like"
        ),
    }
    found: Figures = {}
    for name, arriving in kinds.items():
        found["unique"], found[name] = asyncio.run(_in_turn((firsts, arriving)))
    return found


async def _in_turn(streams: Sequence[Sequence[Signature]]) -> list[Figures]:
    with own_server() as (server, url):
        index = await opened(url, sum(map(len, streams)))
        try:
            store = index.store()
            return [(await cost(server, store, stream))[1] for stream in streams]
        finally:
            await index.close()


def campaigns(documents: int) -> Figures:
    """Return the cost of campaigns beside that of unique documents of the same length."""
    streams = {
        "unique": unique(documents, MAIL_WORDS, 2),
        "one body": mails(documents, 1),
        "eight variants": mails(documents, 8),
    }
    return {name: asyncio.run(_campaign(signed(texts))) for name, texts in streams.items()}


async def _campaign(signatures: Sequence[Signature]) -> Figures:
    tenth = max(len(signatures) // 10, 1)
    parts = signatures[:tenth], signatures[tenth:-tenth], signatures[-tenth:]
    with own_server() as (server, url):
        index = await opened(url, len(signatures))
        try:
            store = index.store()
            found = [await cost(server, store, part) for part in parts]
        finally:
            await index.close()
    figures = [each for _, each in found]
    return {
        **{name: _mean(figures, name) for name in _SUMMED},
        "documents_per_second": round(len(signatures) / sum(fed.seconds for fed, _ in found)),
        "commands_of_the_first_tenth": figures[0]["commands"],
        "commands_of_the_last_tenth": figures[-1]["commands"],
        "families": len({verdict.family.id for fed, _ in found for verdict in fed.verdicts.values()}),
        "full_buckets": sum(fed.full_buckets for fed, _ in found),
    }


def _mean(figures: Sequence[Figures], name: str) -> float:
    """Return the mean of parts of different size."""
    total = sum(each["documents"] for each in figures)
    return round(float(sum(each[name] * each["documents"] for each in figures) / total), 3)
