"""A worker that crashes keeps the reason that says most about it."""

import asyncio

import faust
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


def test_a_worker_ends_once_what_was_cancelled_has_ended() -> None:
    steps: list[str] = []

    async def slow_to_end() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0.01)
            steps.append("ended")

    with asyncio.Runner() as runner:
        loop = runner.get_loop()
        worker = FirstCrashWorker(runner.run(_app()), loop=loop)
        loop.create_task(slow_to_end())
        worker._gather_all()
        loop.run_until_complete(worker._sentinel_task())
        assert steps == ["ended"]
        runner.run(_wait_for_nothing())


async def _wait_for_nothing() -> None:
    without_tasks = FirstCrashWorker(await _app())
    with pytest.raises(StopIteration):
        without_tasks._sentinel_task().send(None)


async def _app() -> faust.App:
    return create_app(Settings(), Health())
