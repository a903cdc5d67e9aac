"""The probe's reaction to services that are away or refuse."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from unittest.mock import patch

import pytest

from nearstream.streams.index.contract import IndexUnavailableError
from nearstream.workers.config.settings import SettingsError
from nearstream.workers.kafka.errors import KafkaUnreachableError
from nearstream.workers.kafka.lag import LagReader, PartitionLag
from nearstream.workers.monitoring import probe
from nearstream.workers.monitoring.health import Health

REASON = "it is so"


@asynccontextmanager
async def nothing_waits() -> AsyncIterator[LagReader]:
    async def read() -> list[object]:
        return []

    yield read  # type: ignore[misc] # an empty list is one of any


async def answers() -> None:
    pass


GIVEN = {"open_lag": nothing_waits, "ask_index": answers, "keyed_topic": "signatures"}


async def noted(health: Health, **given: object) -> None:
    """Poll until a service was found away or all were reached."""
    watching = asyncio.create_task(probe._poll(health, **GIVEN | given))  # type: ignore[arg-type]
    async with asyncio.timeout(60):
        while not health.away and not watching.done():
            await asyncio.sleep(0.01)
    watching.cancel()


@pytest.mark.parametrize("error", [IndexUnavailableError(REASON), SettingsError(REASON)])
async def test_an_index_that_is_away_or_refuses_us_is_told(error: Exception) -> None:
    async def ask() -> None:
        raise error

    health = Health()
    await noted(health, ask_index=ask)
    assert health.away == REASON


@pytest.mark.parametrize("error", [KafkaUnreachableError(REASON), SettingsError(REASON)])
async def test_a_broker_that_is_away_or_refuses_us_is_told(error: Exception) -> None:
    @asynccontextmanager
    async def refused() -> AsyncIterator[LagReader]:
        raise error
        yield

    health = Health()
    await noted(health, open_lag=refused)
    assert health.away == REASON


async def test_a_halt_is_said_again_and_again_with_the_time_when_it_began(caplog: pytest.LogCaptureFixture) -> None:
    health, said = Health(), list[tuple[str, int]]()
    answers = [IndexUnavailableError(REASON), IndexUnavailableError(REASON), ZeroDivisionError(), None, None]

    async def say(why: str, since_ms: int) -> None:
        said.append((why, since_ms))
        error = answers[len(said) - 1] if len(said) <= len(answers) else None
        if error is not None:
            raise error

    with patch.object(probe, "SAY_SECONDS", 0.0):
        saying = asyncio.create_task(probe._say(health, say))
        await asyncio.sleep(0.01)
        assert said == []
        health.halted = "4 dead letters in a row"
        async with asyncio.timeout(60):
            while len(said) < len(answers):
                await asyncio.sleep(0)
        saying.cancel()
    assert len(set(said)) == 1
    assert said[0][0] == "4 dead letters in a row"
    assert said[0][1] > 1_700_000_000_000
    assert caplog.text.count(f"others are not told that this worker is halted: {REASON}") == 1


async def test_a_keyed_topic_that_grows_is_a_reason_to_stop() -> None:
    counts = [6, 6, 0, 6, 8, 8]

    @asynccontextmanager
    async def growing() -> AsyncIterator[LagReader]:
        async def read() -> list[PartitionLag]:
            found = counts.pop(0) if len(counts) > 1 else counts[0]
            rows = [PartitionLag("signatures", number, 0, 0, 0, None) for number in range(found)]
            return [*rows, *(PartitionLag("documents", number, 0, 0, 0, None) for number in range(10 - len(counts)))]

        yield read

    health = Health()
    with patch.object(probe, "INTERVAL_SECONDS", 0.0):
        watching = asyncio.create_task(probe._poll(health, growing, answers, "signatures"))
        async with asyncio.timeout(60):
            while not health.refused:
                await asyncio.sleep(0.01)
        watching.cancel()
    assert health.refused.startswith("topic signatures grew from 6 to 8 partitions: ")


async def test_an_error_that_nobody_foresaw_does_not_end_the_watch(caplog: pytest.LogCaptureFixture) -> None:
    errors: list[Exception] = [ZeroDivisionError(), IndexUnavailableError(REASON)]

    async def ask() -> None:
        raise errors.pop(0)

    health = Health()
    await noted(health, ask_index=ask)
    assert health.away == REASON
    assert "ZeroDivisionError" in caplog.text
