"""The probe's reaction to services that are away or refuse."""

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from unittest.mock import patch

import pytest

from nearstream.streams.store.limits import IndexUnavailableError
from nearstream.workers.config.settings import SettingsError
from nearstream.workers.kafka.errors import KafkaUnreachableError
from nearstream.workers.kafka.lag import LagReader
from nearstream.workers.monitoring import probe
from nearstream.workers.monitoring.health import Health
from tests.support.turns import until

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
    await until(lambda: health.away or watching.done())
    watching.cancel()


async def test_a_service_that_is_away_or_refuses_us_is_told_after_an_error_that_nobody_foresaw(
    caplog: pytest.LogCaptureFixture,
) -> None:
    for error in (IndexUnavailableError(REASON), SettingsError(REASON), KafkaUnreachableError(REASON)):
        errors: list[Exception] = [ZeroDivisionError(), error]

        async def ask(errors: list[Exception] = errors) -> None:
            raise errors.pop(0)

        @asynccontextmanager
        async def refused(error: Exception = error) -> AsyncIterator[LagReader]:
            raise error
            yield

        is_broker = isinstance(error, KafkaUnreachableError)
        health = Health()
        await noted(health, **({"open_lag": refused} if is_broker else {"ask_index": ask}))
        assert health.away == REASON
    assert caplog.text.count("ZeroDivisionError\n") == 2


async def test_a_state_is_said_again_and_again_until_the_worker_leaves(caplog: pytest.LogCaptureFixture) -> None:
    health, left = Health(assigned=frozenset({("documents", 0)})), threading.Event()
    said: list[tuple[str, int, str]] = []
    faults = [IndexUnavailableError(REASON), IndexUnavailableError(REASON), ZeroDivisionError()]

    async def say(state: str, since_ms: int, why: str) -> None:
        said.append((state, since_ms, why))
        if faults:
            raise faults.pop(0)

    async def forget() -> None:
        said.append(("", 0, "left"))

    with patch.object(probe, "SAY_SECONDS", 0.01):
        saying = asyncio.create_task(probe._say(health, say, forget, left))
        await until(lambda: sum(each[0] == "live" for each in said) >= 5)
        health.halted = "4 dead letters in a row"
        await until(lambda: sum(each[0] == "halted" for each in said) >= 2)
        health.is_leaving = True
        await saying
    assert left.is_set()
    assert said[-1] == ("", 0, "left")
    assert [len({each[1] for each in said if each[0] == state}) for state in ("live", "halted")] == [1, 1]
    assert said[-2][2] == "4 dead letters in a row"
    assert min(each[1] for each in said[:-1]) > 1_700_000_000_000
    assert caplog.text.count(f"others do not learn how this worker does: {REASON}") == 1
