"""A broker beside a Redis of our own: started, hurt, restarted, never left behind."""

import asyncio
import os
import re
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import redis
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.client import AIOKafkaClient

from workers import background_stack
from workers.kafka_ready import broker_answers
from workers.local_kafka import KafkaPorts, choose_ports, kafka_server
from workers.local_redis import redis_answers, redis_server
from workers.local_server import LocalServer, StackUnavailableError, free_ports, port_answers, running
from workers.local_stack import local_stack, started_stack


@pytest.fixture(scope="module")
def ports() -> KafkaPorts:
    return choose_ports(free_ports(1)[0])


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory, ports: KafkaPorts) -> Iterator[LocalServer]:
    with running(kafka_server(tmp_path_factory.mktemp("kafka"), ports)) as server:
        yield server


@pytest.fixture(scope="module")
def own_redis(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalServer]:
    with running(redis_server(tmp_path_factory.mktemp("redis"))) as server:
        yield server


@pytest.fixture
def no_given_addresses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NEARSTREAM_KAFKA", raising=False)
    monkeypatch.delenv("NEARSTREAM_REDIS", raising=False)


def until(condition: Callable[[], bool], seconds: float = 20.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "not so in time"
        time.sleep(0.02)


def silent(address: str) -> bool:
    host, port = address.removeprefix("redis://").removesuffix("/0").rsplit(":", 1)
    return not port_answers(host, int(port))


@asynccontextmanager
async def new_topic(bootstrap: str) -> AsyncIterator[str]:
    topic = f"t-{uuid.uuid4().hex}"
    admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
    await admin.start()
    try:
        await admin.create_topics([NewTopic(topic, num_partitions=2, replication_factor=1)])
        yield topic
        await admin.delete_topics([topic])
    finally:
        await admin.close()


async def values_of(bootstrap: str, topic: str, count: int) -> list[bytes]:
    consumer = AIOKafkaConsumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest")
    consumer.assign([TopicPartition(topic, partition) for partition in (0, 1)])
    async with consumer, asyncio.timeout(20):
        return sorted([(await consumer.getone()).value for _ in range(count)])


async def test_a_killed_broker_comes_back_with_every_acknowledged_record(broker: LocalServer) -> None:
    sent = [b"%03d" % number for number in range(200)]
    async with new_topic(broker.address) as topic:
        async with AIOKafkaProducer(bootstrap_servers=broker.address, enable_idempotence=True) as producer:
            await asyncio.gather(*[producer.send_and_wait(topic, value) for value in sent])
        before = broker.pid
        await asyncio.to_thread(broker.kill)
        assert silent(broker.address)
        await asyncio.to_thread(broker.start)
        assert broker.pid != before
        assert await values_of(broker.address, topic, len(sent)) == sent


async def test_a_paused_broker_delivers_after_it_is_resumed(broker: LocalServer) -> None:
    async with (
        new_topic(broker.address) as topic,
        AIOKafkaProducer(bootstrap_servers=broker.address, enable_idempotence=True) as producer,
    ):
        broker.pause()
        try:
            delivery = await producer.send(topic, b"held")
            done, _ = await asyncio.wait([delivery], timeout=0.5)
            assert not done
        finally:
            broker.resume()
        await asyncio.wait_for(delivery, 20)
        assert await values_of(broker.address, topic, 1) == [b"held"]


async def test_the_fault_listener_names_the_port_of_the_proxy(broker: LocalServer, ports: KafkaPorts) -> None:
    client = AIOKafkaClient(bootstrap_servers=f"127.0.0.1:{ports.fault}")
    try:
        await client.bootstrap()
        assert [node.port for node in client.cluster.brokers()] == [ports.advertised_fault]
    finally:
        await client.close()


async def test_a_given_broker_is_used_but_never_ended(broker: LocalServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEARSTREAM_KAFKA", broker.address)
    async with local_stack(redis=False) as stack:
        assert (stack.kafka, stack.kafka_server, stack.pids) == (broker.address, None, [])
    assert await broker_answers(broker.address)


def test_a_killed_redis_comes_back_with_every_acknowledged_write(own_redis: LocalServer) -> None:
    host, port = own_redis.address.split(":")
    client = redis.Redis(host=host, port=int(port))
    client.set("k", "v")
    own_redis.kill()
    assert not redis_answers(own_redis.address)
    own_redis.restart()
    assert client.get("k") == b"v"
    assert client.config_get("*-*polic*", "hash-max-listpack-value") == {
        "maxmemory-policy": "noeviction",
        "hash-max-listpack-value": "8192",
    }
    client.close()


def test_a_paused_server_can_be_stopped(tmp_path: Path) -> None:
    server = redis_server(tmp_path)
    with running(server):
        server.pause()
    assert server.pid is None
    assert silent(server.address)


def test_a_server_that_cannot_start_says_why(own_redis: LocalServer, tmp_path: Path) -> None:
    port = own_redis.address.split(":")[1]
    second = redis_server(tmp_path)
    taken = [port if word == second.address.split(":")[1] else word for word in second._command]
    again = LocalServer("Redis", second.address, taken, tmp_path / "log", redis_answers)
    with pytest.raises(StackUnavailableError, match="in use"):
        again.start()


@pytest.mark.usefixtures("no_given_addresses")
def test_a_server_outlives_the_thread_that_asked_for_it() -> None:
    addresses: list[str] = []
    go_on = threading.Event()

    def hold() -> None:
        with started_stack(kafka=False) as stack:
            starter = threading.Thread(target=stack.redis_server.restart if stack.redis_server else None)
            starter.start()
            starter.join()
            addresses.append(stack.redis)
            go_on.wait(20)

    holder = threading.Thread(target=hold)
    holder.start()
    until(lambda: bool(addresses))
    assert not silent(addresses[0])
    go_on.set()
    holder.join()
    assert silent(addresses[0])


@pytest.mark.usefixtures("no_given_addresses")
async def test_nothing_is_left_after_an_exception_or_a_cancelled_start(tmp_path: Path) -> None:
    async def hold() -> None:
        async with local_stack(kafka=False, folder=tmp_path) as stack:
            seen.append(stack.redis)
            raise ZeroDivisionError

    seen: list[str] = []
    with pytest.raises(ZeroDivisionError):
        await hold()
    assert silent(seen[0])
    starting = asyncio.create_task(hold())
    await asyncio.sleep(0)
    starting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await starting
    assert len(seen) == 1
    ports = re.findall(r"port=(\d+)", (tmp_path / "redis" / "server.log").read_text())
    assert all(silent(f"127.0.0.1:{port}") for port in ports)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ends children with their parent")
@pytest.mark.usefixtures("no_given_addresses")
def test_servers_end_with_a_parent_that_had_no_chance_to_stop_them(tmp_path: Path) -> None:
    program = (
        "import sys, time; from pathlib import Path; from workers.local_stack import started_stack\n"
        "with started_stack(kafka=False, folder=Path(sys.argv[1])) as stack:\n"
        "    print(stack.redis, flush=True); time.sleep(60)"
    )
    command = [sys.executable, "-c", program, str(tmp_path)]
    parent = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    with parent:
        address = parent.stdout.readline().strip()
        assert not silent(address)
        parent.kill()
    until(lambda: silent(address))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_the_command_prints_the_addresses_and_ends_its_servers_on_a_signal(
    broker: LocalServer, number: signal.Signals
) -> None:
    given = {**os.environ, "NEARSTREAM_KAFKA": broker.address}
    given.pop("NEARSTREAM_REDIS", None)
    command = [sys.executable, "-m", "workers.local_stack"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=given)
    assert process.stdout is not None
    with process:
        assert process.stdout.readline() == f"export NEARSTREAM_KAFKA={broker.address}\n"
        name, address = process.stdout.readline().strip().split("=", 1)
        assert name == "export NEARSTREAM_REDIS"
        assert not silent(address)
        process.send_signal(number)
        assert process.wait(20) == 0
    assert silent(address)


def test_a_background_stack_starts_once_stops_once_and_keeps_its_data(
    broker: LocalServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NEARSTREAM_KAFKA", broker.address)
    monkeypatch.delenv("NEARSTREAM_REDIS", raising=False)
    first = background_stack.start(tmp_path)
    try:
        assert background_stack.start(tmp_path) == first
        with redis.Redis.from_url(first.redis) as client:
            client.set("k", "v")
        assert background_stack.stop(tmp_path)
        assert silent(first.redis)
        assert not background_stack.stop(tmp_path)
        second = background_stack.start(tmp_path)
        with redis.Redis.from_url(second.redis) as client:
            assert client.get("k") == b"v"
        os.kill(second.owner, signal.SIGKILL)
        until(lambda: background_stack.running_in(tmp_path) is None)
        assert background_stack.start(tmp_path).owner != second.owner
    finally:
        background_stack.stop(tmp_path)
    assert background_stack.owner_of(tmp_path) is None
