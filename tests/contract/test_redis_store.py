"""A slot on Redis answers as a slot in memory does."""

import asyncio
import secrets
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest
from redis.asyncio import Redis, RedisCluster

from nearstream.streams.store.limits import REMOVAL_MS, IndexBehindError, IndexLimits, IndexUnavailableError
from nearstream.streams.store.messages import (
    Cover,
    Entry,
    Join,
    Leave,
    Mark,
    Measure,
    Note,
    Proposal,
    Query,
    Shortened,
)
from nearstream.streams.store.part import Part
from nearstream.streams.store.record import PATCH
from nearstream.streams.store.registration import DOCUMENT_BYTES, Labelling, Order, Put, Removal, Status
from nearstream.streams.store.store import Call, Local, Shape
from nearstream.workers.redis.server.functions import function_library, load_functions
from nearstream.workers.redis.server.layout import CHUNKED_KINDS, KeyKind, StoreLayout
from nearstream.workers.redis.server.shared_connection import SharedConnection
from nearstream.workers.redis.store.calls import LaneCalls
from nearstream.workers.redis.store.opening import open_store
from nearstream.workers.redis.store.transport import RedisTransport
from tests.devstack.redis import redis_server
from tests.devstack.server import LocalServer, running
from tests.support.declared import watched

PARTITIONS = 3
RETENTION_SECONDS = 5_000
_AT_ONCE = ["--repl-diskless-sync-delay", "0"]  # of a server whose replica begins to follow it
KEYS = [kind + bytes([i]) * 8 for kind in (b"x", b"l", b"b", b"a") for i in range(1, 4)]
DOCUMENTS = [bytes([i]) * 9 for i in range(1, 7)]


@pytest.fixture(scope="module", autouse=True)
def _declared(redis_url: str) -> Iterator[None]:
    """Watch what functions touch on the shared server in all tests of this file."""
    with watched(redis_url) as watch:
        yield
    assert {name for name, _ in watch.undeclared if name.startswith(b"nearstream")} == set()


@pytest.fixture
async def client(redis_url: str) -> AsyncIterator[Redis]:
    async with Redis.from_url(redis_url, protocol=2) as client:
        yield client


@pytest.fixture
async def layout(client: Redis) -> AsyncIterator[StoreLayout]:
    prefix = b"{test-%s:" % secrets.token_hex(6).encode()
    limits = IndexLimits(bucket_cap=14, retention_seconds=RETENTION_SECONDS)
    layout = StoreLayout(prefix, b"epoch 01", Shape(1, PARTITIONS), dict.fromkeys(CHUNKED_KINDS, 2), limits)
    await client.hset(layout.tag(0) + KeyKind.FACTS, "layout", layout.packed)  # type: ignore[misc]
    yield layout
    async for key in client.scan_iter(match=prefix.decode() + "*", count=1_000):
        await client.delete(key)


def _transport(client: Redis, layout: StoreLayout, calls: LaneCalls) -> RedisTransport:
    return RedisTransport(SharedConnection(client.connection_pool), layout, calls)


class Traffic:
    """Random calls with which slots are compared."""

    def __init__(self, seed: int) -> None:
        """Begin at any time."""
        self.draw = Random(seed)
        self.now_ms = 1_700_000_000_000 + self.draw.randrange(10**9)
        self.offsets = [0] * PARTITIONS
        self.told: list[Put | Removal | Labelling] = []

    def call(self) -> tuple[str, list[Any]]:
        """Return the name of a call and its items."""
        draw = self.draw
        self.now_ms += draw.choice(
            (0, 0, 1, 1_000, 60_000, 300_000, draw.randrange(4_000_000), draw.randrange(15_000_000))
        )
        weights = {"register": 9, "enter": 4, "peek": 1, "withdraw": 2, "fetch": 6, "note": 3, "decide": 6, "join": 6}
        weights |= {"leave": 3, "mark": 3, "growth": 4, "cover": 1, "shorten": 2, "kept": 3}
        (name,) = draw.choices(list(weights), list(weights.values()))
        return name, [getattr(self, f"_{name}")() for _ in range(draw.randint(1, 4))]

    def _number(self) -> int:
        draw = self.draw
        if self.told and draw.random() < 0.95:
            return draw.choice(self.told[-12:]).number
        return draw.randrange(1, 10 ** draw.choice((1, 2, 9, 12)))

    def _new_number(self) -> int:
        partition = self.draw.randrange(PARTITIONS)
        self.offsets[partition] += 1
        return self.offsets[partition] * PARTITIONS + partition

    def _register(self) -> Put | Removal | Labelling:
        draw = self.draw
        if self.told and draw.random() < 0.2:
            return draw.choice(self.told[-10:])._replace(now_ms=self.now_ms)
        kind, number, document = draw.random(), self._new_number(), draw.choice(DOCUMENTS)
        partition, offset = draw.choice((-1, 0, 1)), draw.randrange(30)
        sent_ms = draw.choice((0, 5_000, 6_000, 6_001, 253_402_300_799_999))
        if kind < 0.15:
            one: Put | Removal | Labelling = Removal(
                number, document, partition, max(partition, offset), self.now_ms, sent_ms
            )
        elif kind < 0.25:
            given_ms = max(self.now_ms + draw.randrange(-9_000, 2_000), 0)
            one = Labelling(number, document, draw.choice((b"", b"spam", b"ham")), given_ms, self.now_ms)
        else:
            order = Order(draw.randrange(-9, 9), partition, offset, b"version%d" % draw.randrange(3))
            same = [each for each in self.told if isinstance(each, Put) and each.document == document]
            if same and draw.random() < 0.15:
                order = same[-1].order
            record = draw.randbytes(draw.choice((1, 30, 300)))
            one = Put(number, document, order, draw.randrange(99), record, self.now_ms, sent_ms)
        self.told.append(one)
        return one

    def _enter(self) -> Entry:
        keys = b"".join(self.draw.sample(KEYS, self.draw.randint(1, 6)))
        return Entry(self._number(), self._number() if self.draw.random() < 0.3 else 0, keys)

    _peek = _withdraw = _enter

    def _fetch(self) -> Query:
        return Query(self._number(), self._number() if self.draw.random() < 0.5 else 0, self.draw.random() < 0.5)

    def _note(self) -> Note:
        return Note(self._number(), self._number())

    def _decide(self) -> Proposal:
        draw, number = self.draw, self._number()
        founder = number if draw.random() < 0.6 else self._number()
        decision = founder.to_bytes(5, "big") + draw.randbytes(draw.choice((1, 17)))
        return Proposal(number, draw.choice((0, 0, 1, 2, 3, 99)), decision)

    def _join(self) -> Join:
        draw, founder = self.draw, self._number()
        links = b"".join(
            [bytes((draw.randrange(2), 0, 0, 0, draw.randrange(40), 7)) for _ in range(draw.choice((0, 0, 1, 5)))]
        )
        addresses = [bytes([draw.randrange(256)]) * 8 for _ in range(draw.choice((0, 1, 30)))]
        return Join(
            founder,
            founder if draw.random() < 0.1 else self._number(),
            draw.random() < 0.2,
            draw.random() < 0.6,
            links,
            self._number() if draw.random() < 0.3 else 0,
            founder.to_bytes(16, "big"),
            draw.randrange(-9, 9),
            b"".join(addresses[:1]),
            b"".join(addresses[1:]),
            self.now_ms,
            *(draw.choice((b"", bytes([draw.randrange(1, 9)]) * 8)) for _ in range(2)),
            draw.random() < 0.5,
            *(draw.choice((0, 0, 0, 1, 4, 9)) for _ in range(2)),
        )

    def _shorten(self) -> Shortened:
        return Shortened(self._number(), PATCH + self.draw.randbytes(9))

    def _kept(self) -> int:
        return self._number()

    def _leave(self) -> Leave:
        return Leave(self._number(), self._number())

    def _mark(self) -> Mark:
        draw, founder = self.draw, self._number()
        number = founder if draw.random() < 0.3 else self._number()
        return Mark(founder, draw.choice(DOCUMENTS), number, draw.choice((b"", b"spam")))

    def _growth(self) -> Measure:
        return Measure(self._number(), self.now_ms)

    def _cover(self) -> Cover:
        return Cover(self.draw.randrange(PARTITIONS), -1, self.now_ms)  # memory sweeps at once what was covered


def _entry(number: int) -> Entry:
    return Entry(number, 0, KEYS[0] + KEYS[5])


@pytest.mark.parametrize("seed", range(12))
async def test_a_slot_on_redis_answers_as_one_in_memory(seed: int, client: Redis, layout: StoreLayout) -> None:
    part = _part(layout.limits)
    memory, redis, traffic = Local([part]), _transport(client, layout, LaneCalls(layout)), Traffic(seed)
    for turn in range(150):
        name, items = traffic.call()
        call = Call(0, name, items, 0)
        (expected,), (found,) = await memory.all([call]), await redis.all([call])
        for item, one, other in zip(items, expected, found, strict=True):
            assert other == one, (turn, item)


async def test_calls_for_a_server_without_the_functions_load_them(client: Redis, layout: StoreLayout) -> None:
    transport = _transport(client, layout, LaneCalls(layout))
    await load_functions(client)
    await client.function_delete(f"nearstream_store_{function_library()[0]}")
    calls = [Call(0, "enter", [_entry(1)], 0), Call(0, "enter", [_entry(2)], 0), Call(0, "peek", [_entry(3)])]
    assert len([answer for reply in await transport.all(calls) for answer in reply if answer]) == 2


async def test_an_entry_of_many_keys_is_a_call_of_its_own(client: Redis, layout: StoreLayout) -> None:
    transport = _transport(client, layout, LaneCalls(layout))
    many = b"".join(b"a" + i.to_bytes(8, "big") for i in range(0, 700 << 40, 1 << 40))
    batch = [Entry(number, 0, many) for number in (1, 2, 3)]
    (found,) = await transport.all([Call(0, "enter", batch, 0)])
    assert [len(one) for one in found] == [0, 700 * 9, 700 * 14]


@pytest.mark.parametrize("call", [Call(0, "enter", [_entry(3)], 2), Call(0, "wait", [None], 2)], ids=["write", "wait"])
async def test_a_slot_that_lost_its_newest_writes_says_where_to_begin_again(
    client: Redis, layout: StoreLayout, call: Call
) -> None:
    transport = _transport(client, layout, LaneCalls(layout))
    await transport.all([Call(0, "enter", [_entry(1)], 2), Call(0, "cover", [Cover(2, 7)], 2)])
    before = [(key, await client.dump(key)) async for key in client.scan_iter(match=_pattern(layout))]
    await transport.all([Call(0, "enter", [_entry(2)], 2)])
    await client.delete(*[key async for key in client.scan_iter(match=_pattern(layout))])
    for key, value in before:
        await client.restore(key, 0, value)
    await transport.all([Call(0, "enter", [_entry(3)], 1)])
    with pytest.raises(IndexBehindError) as behind:
        await transport.all([call])
    assert (behind.value.partition, behind.value.checkpoint) == (2, 7)
    assert await transport.all([Call(0, "enter", [_entry(2)], 2)])


async def test_a_slot_that_was_covered_before_its_first_document_sweeps_nothing(
    client: Redis, layout: StoreLayout
) -> None:
    transport, now_ms = _transport(client, layout, LaneCalls(layout)), 1_700_000_000_000
    await transport.all([Call(0, "cover", [Cover(0, 9, now_ms)], 0)])  # of documents whose homes are other slots
    put = Put(PARTITIONS + 1, bytes(9), Order(0, 1, 0, b"version1"), 1, b"record", now_ms)
    await transport.all([Call(0, "register", [put], 1), Call(0, "cover", [Cover(0, 19, now_ms)], 0)])
    assert await client.hget(layout.tag(0) + KeyKind.FACTS, "over") is None  # type: ignore[misc]


async def test_what_is_over_is_swept_while_new_documents_come(client: Redis, layout: StoreLayout) -> None:
    transport, began_ms = _transport(client, layout, LaneCalls(layout)), 1_700_000_000_000
    names = {kind: [layout.tag(0) + kind + bytes([0, 0, 0, at]) for at in range(2)] for kind in (b"b", b"i")}

    async def come(first: int, now_ms: int) -> None:
        for offset in range(first, first + 100):
            now_ms += 20_000
            number, document = (offset + 1) * PARTITIONS, offset.to_bytes(DOCUMENT_BYTES, "little")
            put = Put(number, document, Order(now_ms, 0, offset, b"version1"), 1, b"record", now_ms)
            label = Labelling(number, document, b"spam", now_ms, now_ms)
            key = b"b" + (offset * 10**16).to_bytes(8, "big")
            join = Join(PARTITIONS, number, False, True, b"", 0, bytes(16), now_ms, now_ms=now_ms)
            calls = [Call(0, "register", [put, label], 0), Call(0, "enter", [Entry(number, 0, key)], 0)]
            calls += [Call(0, "join", [join], 0)]
            await transport.all([*calls, Call(0, "cover", [Cover(0, offset, now_ms)], 0)])

    async def fields(kind: bytes) -> int:
        return sum([await client.hlen(name) for name in names[kind]])  # type: ignore[misc]

    await come(0, began_ms)
    assert (await fields(b"b"), await fields(b"i")) == (100, 200)
    await come(100, began_ms + 1_000 * RETENTION_SECONDS)  # what came first still leads to its family
    assert (await fields(b"b"), await fields(b"i")) == (200, 400)
    await come(200, began_ms + 3_200 * RETENTION_SECONDS)
    members = layout.tag(0) + KeyKind.MEMBERS + PARTITIONS.to_bytes(5, "big")
    assert await client.zcard(members) < 140
    assert await fields(b"b") < 140
    assert await fields(b"i") < 280


@pytest.mark.parametrize("comes", [Put, Removal], ids=["put", "removal"])
async def test_removals_of_unknown_documents_are_swept_after_an_hour_by_whatever_comes_then(
    client: Redis, layout: StoreLayout, comes: type[Put | Removal]
) -> None:
    part, began_ms = _part(layout.limits), 1_700_000_000_000
    both = Local([part]), _transport(client, layout, LaneCalls(layout))

    async def come(kind: type[Put | Removal], first: int, now_ms: int) -> tuple[int, int]:
        for offset in range(first, first + 100):
            number, document = (offset + 1) * PARTITIONS, offset.to_bytes(DOCUMENT_BYTES, "little")
            put = Put(number, document, Order(now_ms, 0, offset, b"version1"), 1, b"record", now_ms)
            one = put if kind is Put else Removal(number, document, 0, offset, now_ms)
            for store in both:
                await store.all([Call(0, "register", [one], 0)])
        names = [layout.tag(0) + KeyKind.REGISTRY + bytes([0, 0, 0, at]) for at in range(2)]
        fields = [each for name in names for each in await client.hkeys(name)]  # type: ignore[misc]
        return sum(each.endswith(b"u") for each in fields), len(part.history.removals)

    assert await come(Removal, 0, began_ms) == (100, 100)
    new = 100 if comes is Removal else 0
    assert await come(comes, 100, began_ms + REMOVAL_MS) == (100 + new, 100 + new)
    assert await come(comes, 200, began_ms + 2 * REMOVAL_MS + 1) == (new, new)


async def test_a_lane_requires_that_a_slot_knows_what_was_done(client: Redis, layout: StoreLayout) -> None:
    transport = _transport(client, layout, LaneCalls(layout))
    await transport.all([Call(0, "require", [Cover(1, -1)], 1), Call(0, "cover", [Cover(1, 41)], 1)])
    await transport.all([Call(0, "cover", [Cover(1, 40)], 1), Call(0, "require", [Cover(1, 41)], 1)])
    with pytest.raises(IndexBehindError, match="partition 1: the index has no writes after offset 41"):
        await transport.all([Call(0, "require", [Cover(1, 42)], 1)])


async def test_what_is_decided_waits_for_replicas(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, layout: StoreLayout
) -> None:
    primary, replica = (redis_server(tmp_path / name, _AT_ONCE) for name in ("primary", "replica"))
    monkeypatch.setattr("nearstream.workers.redis.store.calls._WAIT_MS", 300)
    put = Put(1, DOCUMENTS[0], Order(1, 0, 1, b"version1"), 1, b"record", 5)
    decision = (1).to_bytes(5, "big") + b"x"
    confirmed = [
        Call(0, "decide", [Proposal(1, 0, decision)], 1),
        Call(0, "note", [Note(4, 1)], 1),
        Call(0, "join", [Join(1, 7, False, True, b"", 0, bytes(16), 0, now_ms=5)], 1),
        Call(0, "wait", [None], 1),
    ]
    with running(primary), running(replica):
        async with Redis.from_url(f"redis://{primary.address}", protocol=2) as client:
            await client.hset(layout.tag(0) + KeyKind.FACTS, "layout", layout.packed)
            waiting = _transport(client, layout, LaneCalls(layout, replicas=1))
            await waiting.all([Call(0, "register", [put], 1)])
            for call in confirmed:
                with pytest.raises(IndexUnavailableError, match="0 of 1 replicas"):
                    await waiting.all([call])
                assert await _transport(client, layout, LaneCalls(layout)).all([call])
            async with Redis.from_url(f"redis://{replica.address}", protocol=2) as follower:
                await follower.replicaof(*primary.address.split(":"))
                deadline = time.monotonic() + 60
                while (await follower.info("replication"))["master_link_status"] != "up":
                    assert time.monotonic() < deadline
                    await asyncio.sleep(0.05)
            for call in confirmed:
                assert await waiting.all([call])
            replica.pause()
            with pytest.raises(IndexUnavailableError, match="0 of 1 replicas"):
                await waiting.all(confirmed[:1])
            await waiting.all([Call(0, "enter", [_entry(1)], 1), Call(0, "fetch", [Query(1)])])
            replica.resume()


async def test_a_slot_that_moves_while_calls_are_made_runs_none_halfway(nodes: list[LocalServer]) -> None:
    host, _, port = nodes[0].address.partition(":")
    async with RedisCluster(host=host, port=int(port), protocol=2) as cluster:
        limits, shape = IndexLimits(bucket_cap=14, documents=9_600), Shape(1, PARTITIONS)
        layout = await open_store(cluster, b"{moving:", shape, limits, may_create=True)
        memory, redis, traffic = Local([_part(limits)]), RedisTransport(cluster, layout, LaneCalls(layout)), Traffic(7)
        owner = cluster.get_node_from_key(layout.tag(0).decode())
        for turn in range(60):
            if turn == 20:
                moving = asyncio.create_task(_move(cluster, layout.tag(0)))
            name, items = traffic.call()
            calls = [Call(0, name, items, 0)]
            expected, deadline = await memory.all(calls), time.monotonic() + 30
            while (found := await _answers(redis, calls)) is None:
                assert time.monotonic() < deadline
            assert found == expected, (turn, calls)
        await moving
        assert await redis.all([Call(0, "cover", [Cover(0, 1)], 0)]) == [[None]]
        assert cluster.get_node_from_key(layout.tag(0).decode()) != owner


async def _answers(transport: RedisTransport, calls: list[Call]) -> Any:  # noqa: ANN401 - each call has its own
    try:
        return await transport.all(calls)
    except IndexUnavailableError:
        return None


async def test_a_call_is_refused_as_a_whole_while_its_slot_moves(nodes: list[LocalServer]) -> None:
    host, _, port = nodes[0].address.partition(":")
    async with RedisCluster(host=host, port=int(port), protocol=2) as cluster:
        layout = await open_store(cluster, b"{whole:", Shape(1, 1), IndexLimits(documents=40), may_create=True)
        transport = RedisTransport(cluster, layout, LaneCalls(layout))
        former, other, update = (
            Put(number, document, Order(number, 0, number, b"version%d" % number), 1, b"record", 5)
            for number, document in ((1, DOCUMENTS[0]), (50, DOCUMENTS[1]), (51, DOCUMENTS[0]))
        )
        await transport.all([Call(0, "register", [former, other], 0)])
        # All keys that can be known are still there. That of the former state is not, and cannot be known.
        await _move(cluster, layout.tag(0), KeyKind.STATES + layout.group(former.number))
        with pytest.raises(IndexUnavailableError):
            await transport.all([Call(0, "register", [update], 0)])
        await _move(cluster, layout.tag(0))
        ((answer,),) = await transport.all([Call(0, "register", [update], 0)])
        assert (answer.status, answer.former) == (Status.NEW, former.number)


async def _move(cluster: RedisCluster, tag: bytes, only: bytes = b"") -> None:
    """Move a slot to another node, key by key, or only those of its keys that begin like this."""
    slot = cluster.keyslot(tag)
    source = cluster.get_node_from_key(tag.decode())
    assert source is not None
    target = next(node for node in cluster.get_primaries() if node.name != source.name)
    names = [(await cluster.execute_command("CLUSTER MYID", target_nodes=node)).decode() for node in (source, target)]
    await cluster.execute_command("CLUSTER SETSLOT", slot, "IMPORTING", names[0], target_nodes=target)
    await cluster.execute_command("CLUSTER SETSLOT", slot, "MIGRATING", names[1], target_nodes=source)
    async with Redis(host=source.host, port=source.port) as alone:
        while keys := [key async for key in alone.scan_iter(match=tag.decode() + "*") if key.startswith(tag + only)]:
            for key in keys:
                await alone.execute_command("MIGRATE", target.host, target.port, key, 0, 5_000)
                await asyncio.sleep(0.01)
    for node in (target, source) if not only else ():
        await cluster.execute_command("CLUSTER SETSLOT", slot, "NODE", names[1], target_nodes=node)


def _part(limits: IndexLimits) -> Part:
    """Return a slot in memory that keeps the entries of states that have expired, as a server does."""
    part = Part(limits)
    part.history._forgets = lambda number, founder: None
    return part


def _pattern(layout: StoreLayout) -> str:
    return layout.prefix.decode() + "*"


async def test_a_key_that_a_call_does_not_declare_is_found(redis_url: str, client: Redis) -> None:
    source = "#!lua name=touches\nredis.register_function('touches', function(_, args) redis.call('GET', args[1]) end)"
    with watched(redis_url) as watch:
        await client.execute_command("FUNCTION LOAD", "REPLACE", source)
        await client.execute_command("FCALL", "touches", 1, "one\n\xff", "one\n\xff")
        await client.eval("return redis.call('OBJECT', 'ENCODING', KEYS[1])", 1, "two")
        assert watch.undeclared == set()
        await client.execute_command("FCALL", "touches", 1, "one", "other")
        await client.execute_command("EVAL", "return redis.call('HGET', 'th' .. ARGV[1], 'f')", 0, "ree")
    await client.function_delete("touches")
    assert {name for name, _ in watch.undeclared} >= {b"touches"}
    assert {command for _, command in watch.undeclared} == {b"get", b"hget"}


async def test_a_removal_declares_former_states_of_any_distance(client: Redis, layout: StoreLayout) -> None:
    """Two states of one group are declared at once. A document that follows in the call waits for those before it."""
    part, transport = _part(layout.limits), _transport(client, layout, LaneCalls(layout))
    memory, now_ms = Local([part]), 1_700_000_000_000
    rows = (1, 2, 40, 41, 90, 200)
    puts = [
        Put(row * PARTITIONS, DOCUMENTS[0], Order(row, 0, row, b"%08d" % row), 1, b"record", now_ms) for row in rows
    ]
    late = Put(300 * PARTITIONS, DOCUMENTS[0], Order(0, 0, 300, b"late ..."), 1, b"record", now_ms)
    removal = Removal(301 * PARTITIONS, DOCUMENTS[0], 0, 301, now_ms)
    new = Put(302 * PARTITIONS, DOCUMENTS[0], Order(9, 0, 302, b"again .."), 1, b"record", now_ms)
    for batch in ([puts[0]], [puts[1]], puts[2:4], [puts[4]], [puts[5]], [late, removal, new], [*puts, removal]):
        call = Call(0, "register", batch, 0)
        assert await transport.all([call]) == await memory.all([call])
