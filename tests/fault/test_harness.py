"""A harness that finds nothing proves nothing."""

import asyncio
import random
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from schemas.record import Record
from schemas.topics import DOCUMENTS
from tests.fault.corpus import Sent, corpus
from tests.fault.oracle import expected
from tests.fault.proxy import Proxy, proxied
from tests.fault.report import Report
from tests.fault.runner import run
from tests.fault.wrong_loops import INJECTED, WRONG
from workers import kafka_tools
from workers.settings import load

CAUGHT_BY = {
    "async_for": {"unanswered", "missing"},
    "take_events": {"unanswered", "missing"},
    "ack_first": {"hasty commits"},
    "swallow": {"unanswered", "missing"},
    "look_up_first": {"missing"},
    "clock_in_id": {"missing", "surplus"},
    "hold_loop": {"stalls"},
}


async def test_the_oracle_does_not_depend_on_order(documents: list[Sent]) -> None:
    records = [
        Record(DOCUMENTS.name, 0, offset, 1_790_000_000_000 + offset, sent.key, sent.value, [])
        for offset, sent in enumerate(documents)
    ]
    first = await expected(load({}), records)
    assert first.overflows == 0
    assert len(first.events) > len(documents) / 4
    for order in range(5):
        random.Random(order).shuffle(records)
        again = await expected(load({}), records)
        assert again == first


async def test_each_wrong_loop_is_caught(kafka: str, tmp_path: Path) -> None:
    """All at once, each with a deployment of its own: on their own they would wait most of the time."""
    sent = corpus(300, 3)
    reports = await asyncio.gather(*(_wrong(name, kafka, tmp_path / name, sent) for name in WRONG))
    found = {report.fault: {name for name, count in report.wrong.items() if count} for report in reports}
    for name in WRONG:
        assert found[name] >= CAUGHT_BY[name], found


async def _wrong(name: str, kafka: str, folder: Path, sent: list[Sent]) -> Report:
    async with run(name, kafka, folder, sent) as fault_run:
        fault_run.injected = f"RuntimeError: {INJECTED}"
        for _ in range(2 if name == "look_up_first" else 1):
            fault_run.start(name, entry="tests.fault.wrong_loops")
        await fault_run.drained()
        await fault_run.deployment.send(fault_run.documents)
        return await fault_run.finish()


async def test_a_fault_run_leaves_no_process_and_no_topic(kafka: str, tmp_path: Path) -> None:
    async with run("none", kafka, tmp_path, corpus(20, 1)) as fault_run:
        processes = [fault_run.start(), fault_run.start()]
        server = fault_run.redis
        await fault_run.deployment.send(fault_run.documents)
        await fault_run.drained()
        settings = fault_run.deployment.settings
    assert all(process.poll() is not None for process in processes)
    assert server.pid is None
    async with kafka_tools.admin(settings, 10) as client:
        assert not [name for name in await client.list_topics() if name.startswith(settings.topic_prefix)]


@contextmanager
def connected(listening: socket.socket, proxy: Proxy) -> Iterator[tuple[socket.socket, socket.socket]]:
    """Client and server of a new connection."""
    with socket.create_connection(("127.0.0.1", proxy.port), timeout=0.5) as client, listening.accept()[0] as server:
        server.settimeout(0.5)
        yield client, server


def test_the_proxy_blackholes_one_direction_only() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening, proxied(listening.getsockname()[1]) as proxy:
        for direction in ("down", "up"):
            with connected(listening, proxy) as ends:
                receiver, sender = ends if direction == "down" else ends[::-1]
                proxy.turn(f"blackhole {direction}")
                sender.sendall(b"lost")
                receiver.sendall(b"seen")
                assert sender.recv(9) == b"seen"
                with pytest.raises(TimeoutError):
                    receiver.recv(9)
                proxy.turn("pass")
                with pytest.raises(ConnectionResetError):
                    receiver.recv(9)
        with connected(listening, proxy) as (client, server):
            client.sendall(b"through")
            assert server.recv(9) == b"through"
            proxy.turn("reset")
            with pytest.raises(ConnectionResetError):
                client.recv(9)
