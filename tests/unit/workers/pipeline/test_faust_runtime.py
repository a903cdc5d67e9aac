"""A worker that crashes keeps the reason of its first crash."""

from nearstream.workers.app import create_app
from nearstream.workers.config.settings import Settings
from nearstream.workers.monitoring.health import Health
from nearstream.workers.pipeline.faust_runtime import FirstCrashWorker


async def test_a_crash_keeps_its_reason_when_more_fails_after_it() -> None:
    worker = FirstCrashWorker(create_app(Settings(), Health(), None, None, None))
    first, second = ZeroDivisionError(), ConnectionError()
    for reason in (first, second):
        await worker.crash(reason)
        worker._crash(reason)  # as a service that is not marked as crashed yet passes it on
    assert worker.crash_reason is first
