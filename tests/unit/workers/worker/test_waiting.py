"""While a command waits for a server, it logs the server and the remaining time repeatedly."""

import asyncio
import logging
import re

import pytest

from nearstream.workers.worker import composition
from tests.support.turns import until


async def test_a_wait_is_logged_after_a_moment_then_regularly(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(composition, "FIRST_REPORT_SECONDS", 0.01)
    monkeypatch.setattr(composition, "REPORT_SECONDS", 0.02)

    def logged() -> list[str]:
        return [record.getMessage() for record in caplog.records if record.name == composition.log.name]

    with caplog.at_level(logging.WARNING):
        async with composition.reported("Kafka at h:1", 500.0):
            await until(lambda: len(logged()) >= 3)
    assert all(re.fullmatch(r"waiting for Kafka at h:1, at most (500|49\d) s more", text) for text in logged())


async def test_a_short_wait_and_a_time_that_has_run_out_are_not_logged(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    assert composition.FIRST_REPORT_SECONDS >= 0.5
    async with composition.reported("Kafka at h:1", 5.0):
        await asyncio.sleep(0)
    monkeypatch.setattr(composition, "FIRST_REPORT_SECONDS", 0.02)
    async with composition.reported("Kafka at h:1", 0.01):
        await asyncio.sleep(0.1)
    assert caplog.messages == []
