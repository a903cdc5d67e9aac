"""Poll consumer lag and index availability, and say the state of the worker, from a separate thread."""

import asyncio
import logging
import threading
import time
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager

from nearstream.schemas.live.state import WorkerStateName
from nearstream.streams.store.limits import IndexUnavailableError
from nearstream.workers.config.settings import SettingsError
from nearstream.workers.kafka.errors import KafkaError, KafkaUnreachableError
from nearstream.workers.kafka.lag import LagReader
from nearstream.workers.kafka.topics import WHY_FIXED
from nearstream.workers.monitoring.health import Health

INTERVAL_SECONDS = 10.0
WHILE_AWAY_SECONDS = 1.0
INDEX_SECONDS = 1.0
SAY_SECONDS = 2.0
_LOOKS = 10  # at the state between two times that it is said

OpenLag = Callable[[], AbstractAsyncContextManager[LagReader]]
AskIndex = Callable[[], Awaitable[None]]
Say = Callable[
    [WorkerStateName, int, str], Awaitable[None]
]  # takes the state, since when in milliseconds since 1970, and why

log = logging.getLogger(__name__)


Forget = Callable[[], Awaitable[None]]  # says that the worker is stopped


def start_probe(
    health: Health, open_lag: OpenLag, ask_index: AskIndex, keyed_topic: str, saying: tuple[Say, Forget]
) -> None:
    """Keep `health.lags`, `.away` and `.refused` up to date, and say its state, until the process ends.

    The worker's own Kafka client does not notice an outage while it has no work, and its record of what
    is committed may be wrong. So the probe has its own thread, event loop and connections. The number of partitions of
    `keyed_topic` must stay as it is.
    """
    left = health.has_left = threading.Event()

    async def run() -> None:
        await asyncio.gather(_poll(health, open_lag, ask_index, keyed_topic), _say(health, *saying, left))

    threading.Thread(target=lambda: asyncio.run(run()), name="probe", daemon=True).start()


async def _poll(health: Health, open_lag: OpenLag, ask_index: AskIndex, keyed_topic: str) -> None:
    partitions = 0
    while True:
        try:
            async with open_lag() as read_lag:
                while True:
                    health.lags = tuple(await read_lag())
                    found = sum(lag.topic == keyed_topic for lag in health.lags)
                    partitions = partitions or found
                    if found > partitions:
                        health.refused = (
                            f"topic {keyed_topic} grew from {partitions} to {found} partitions: {WHY_FIXED}"
                        )
                    health.find_away(await _index_error(ask_index))
                    await asyncio.sleep(WHILE_AWAY_SECONDS if health.away else INTERVAL_SECONDS)
        except (KafkaUnreachableError, KafkaError, SettingsError) as error:
            health.find_away(str(error))
        except Exception:  # go on after any error: without this thread the last results would stay in `health` forever
            log.exception("cannot read consumer lag or reach the index")
        await asyncio.sleep(WHILE_AWAY_SECONDS)


async def _say(health: Health, say: Say, forget: Forget, left: threading.Event) -> None:
    """Say the state of the worker again and again, until it leaves and that is said too."""
    known, since_ms, failure = "", 0, ""
    while not left.is_set():
        state, why = health.state
        if state != known:
            known, since_ms = state, time.time_ns() // 1_000_000
        try:
            if health.is_leaving:
                await forget()
                left.set()
            else:
                await say(state, since_ms, why)
            failure = ""
        except (IndexUnavailableError, SettingsError) as error:
            if str(error) != failure:
                failure = str(error)
                log.warning("others do not learn how this worker does: %s", failure)
        except Exception:  # go on after any error, as above
            log.exception("others do not learn how this worker does")
        await _until_news(health, state)


async def _until_news(health: Health, said: WorkerStateName) -> None:
    for _ in range(_LOOKS):
        await asyncio.sleep(SAY_SECONDS / _LOOKS)
        if health.is_leaving or health.state[0] != said:
            return


async def _index_error(ask_index: AskIndex) -> str:
    try:
        async with asyncio.timeout(INDEX_SECONDS):
            await ask_index()
    except TimeoutError:
        return f"Redis does not answer within {INDEX_SECONDS:g} s"
    except (IndexUnavailableError, SettingsError) as error:
        return str(error)
    return ""
