"""A worker that crashes keeps the reason that says most about it."""

import asyncio

import pytest

from nearstream.workers.config.settings import Settings, SettingsError
from nearstream.workers.monitoring.health import Health
from nearstream.workers.pipeline.faust_runtime import FirstCrashWorker
from nearstream.workers.worker.topology import create_app

BUG, OUTAGE, REFUSAL = ZeroDivisionError(), ConnectionError(), SettingsError("a clock is wrong")
CANCELLED = asyncio.CancelledError()


@pytest.mark.parametrize(
    ("crashes", "kept"),
    [
        ([BUG, OUTAGE], BUG),
        ([REFUSAL, BUG, SettingsError("another"), CANCELLED], REFUSAL),
        ([BUG, REFUSAL, OUTAGE], REFUSAL),
        ([CANCELLED, BUG, OUTAGE], BUG),
    ],
)
async def test_the_first_crash_is_kept_unless_a_later_one_can_be_remedied_by_settings(
    crashes: list[BaseException], kept: BaseException
) -> None:
    worker = FirstCrashWorker(create_app(Settings(), Health()))
    for reason in crashes:
        await worker.crash(reason)
        worker._crash(reason)  # as a service that is not marked as crashed yet passes it on
    assert worker.crash_reason is kept
