"""The settings that Faust gets when a worker is created."""

import asyncio
from typing import Any

from nearstream.workers.config.settings import load
from nearstream.workers.kafka.partitioning import choose_partition
from nearstream.workers.monitoring.health import Health
from nearstream.workers.pipeline.faust_consumer import BatchConsumer, IdempotentProducer, Transport
from nearstream.workers.worker.topology import create_app


def app() -> Any:  # noqa: ANN401 - Faust's App without its many type variables
    return create_app(load({}), Health())


async def test_the_poll_interval_is_off() -> None:
    """A batch that pauses longer would silently leave the group for ever."""
    assert app().conf.broker_max_poll_interval >= 7 * 86_400


async def test_alarms_that_count_from_the_start_of_the_process_are_off() -> None:
    """Otherwise a late rebalance would raise false alarms.

    There would be one for every partition that is new to a worker.
    """
    consumer = app().consumer
    async with asyncio.timeout(60):
        await consumer._commit_livelock_detector.fun(consumer)


async def test_the_producer_is_idempotent() -> None:
    made = app()
    assert isinstance(made.transport, Transport)
    assert isinstance(made.consumer, BatchConsumer)
    producer = made.transport.create_producer()
    assert isinstance(producer, IdempotentProducer)
    assert producer._settings_extra() == {"acks": "all", "enable_idempotence": True}
    assert producer._settings_default()["partitioner"] is choose_partition
