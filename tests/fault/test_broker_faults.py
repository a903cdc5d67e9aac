"""A broker that is killed, frozen, cut off or full, and topics that are missing or grow."""

import asyncio
from pathlib import Path

import pytest
from aiokafka.admin import NewPartitions

from nearstream.schemas.topics.table import DOCUMENTS, SIGNATURES, Topic
from nearstream.workers.config.exit_codes import Exit
from nearstream.workers.kafka import client as kafka_client
from tests.devstack.kafka import choose_ports
from tests.devstack.server import free_ports
from tests.fault.conftest import Stage
from tests.fault.disks import filled, small_disk
from tests.fault.proxy import proxied
from tests.fault.runner import RECOVERY_SECONDS, joined
from tests.fault.servers import own_broker
from tests.support.deployment import deployed, until

METADATA_SECONDS = 300  # a consumer refreshes its list of partitions after this time


@pytest.mark.long
@pytest.mark.parametrize("how", ["killed", "frozen", "away"])
async def test_f04_a_broker_that_comes_back_finds_every_worker(stage: Stage, tmp_path: Path, how: str) -> None:
    async with own_broker(tmp_path) as broker, stage("F04", broker=broker.address) as run:
        async with run.load():
            await asyncio.sleep(1)
            if how == "frozen":
                broker.pause()
                await asyncio.sleep(20)
                broker.resume()
            else:
                await asyncio.to_thread(broker.kill)
                await asyncio.sleep(60 if how == "away" else 0)
                await asyncio.to_thread(broker.start)
            assert len(run.alive) == 3
        report = await run.ends_well()
        assert report.recovery_seconds is not None
        assert report.recovery_seconds <= RECOVERY_SECONDS


@pytest.mark.long
async def test_f11_a_broker_with_a_full_disk_is_an_outage(stage: Stage, tmp_path: Path) -> None:
    """Kafka ends when it cannot write its log. The test restarts it once there is room."""
    disk = tmp_path / "kafka" / "data"
    with small_disk(disk):
        async with own_broker(tmp_path) as broker, stage("F11", broker=broker.address, most=40) as run:
            async with run.load():
                with filled(disk):
                    await asyncio.sleep(10)
                    await asyncio.to_thread(broker.kill)
                await asyncio.to_thread(broker.start)
                assert len(run.alive) == 3
            await run.ends_well()


@pytest.mark.long
@pytest.mark.parametrize("direction", ["both", "up", "down"])
async def test_f12_a_worker_without_a_network_is_replaced_and_comes_back(
    stage: Stage, tmp_path: Path, direction: str
) -> None:
    """One of three workers uses proxies to both services, which drop all data for 30 s."""
    front = free_ports(1)[0]
    ports = choose_ports(front)
    with proxied(ports.fault, front) as kafka:
        async with own_broker(tmp_path, ports) as broker, stage("F12", broker=broker.address, workers=2) as run:
            with proxied(int(run.redis.address.rpartition(":")[2])) as redis:
                before = run.rebalances()
                run.start(
                    NEARSTREAM_KAFKA=f"127.0.0.1:{kafka.port}", NEARSTREAM_REDIS=f"redis://127.0.0.1:{redis.port}/0"
                )
                await until(lambda: joined(run, before + 3))
                async with run.load():
                    for way in (kafka, redis):
                        way.turn(f"blackhole {direction}")
                    await asyncio.sleep(30)
                    for way in (kafka, redis):
                        way.turn("reset")
                        way.turn("pass")
                await run.ends_well()


@pytest.mark.long
@pytest.mark.parametrize("topic", [DOCUMENTS, SIGNATURES])
async def test_f35_a_missing_topic_is_named_at_the_start(
    kafka: str, redis_url: str, tmp_path: Path, topic: Topic
) -> None:
    async with deployed(kafka, redis_url, tmp_path) as deployment:
        name = deployment.settings.topic_prefix + topic.name
        async with kafka_client.admin(deployment.settings, 10) as client:
            await client.delete_topics([name])
        done = await asyncio.to_thread(deployment.run, "worker")
        assert done.returncode == Exit.MISCONFIGURED
        assert name in done.stderr.decode()


@pytest.mark.long
async def test_f36_added_partitions_of_documents_are_read(stage: Stage) -> None:
    async with stage("F36") as run:
        settings = run.deployment.settings
        async with kafka_client.admin(settings, 10) as client:
            await client.create_partitions({run.topic: NewPartitions(total_count=8)})
        before = run.rebalances()
        await until(lambda: joined(run, before + 3), METADATA_SECONDS + 60)
        async with run.load():
            pass
        await run.ends_well()
