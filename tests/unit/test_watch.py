"""What the watch makes of services that are away or refuse."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from streams.index import IndexUnavailableError
from workers import watch
from workers.health import Health
from workers.kafka_lag import LagReader
from workers.kafka_tools import KafkaUnreachableError
from workers.settings import SettingsError

REASON = "it is so"


@asynccontextmanager
async def nothing_waits() -> AsyncIterator[LagReader]:
    async def read() -> list[object]:
        return []

    yield read  # type: ignore[misc] # an empty list is one of any


async def answers() -> None:
    pass


async def noted(health: Health, **given: object) -> None:
    """Watches until something was found away, or everything there."""
    watching = asyncio.create_task(watch._watch(health, **{"open_lag": nothing_waits, "ask_index": answers} | given))  # type: ignore[arg-type]
    async with asyncio.timeout(5):
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


async def test_an_error_that_nobody_foresaw_does_not_end_the_watch(caplog: pytest.LogCaptureFixture) -> None:
    errors: list[Exception] = [ZeroDivisionError(), IndexUnavailableError(REASON)]

    async def ask() -> None:
        raise errors.pop(0)

    health = Health()
    await noted(health, ask_index=ask)
    assert health.away == REASON
    assert "ZeroDivisionError" in caplog.text
