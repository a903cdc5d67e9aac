"""Poll consumer lag and index availability, and say a halt, from a separate thread."""

import asyncio
import logging
import threading
import time
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager

from nearstream.streams.index.contract import IndexUnavailableError
from nearstream.workers.config.settings import SettingsError
from nearstream.workers.kafka.errors import KafkaUnreachableError
from nearstream.workers.kafka.lag import LagReader
from nearstream.workers.kafka.topics import WHY_FIXED
from nearstream.workers.monitoring.health import Health

INTERVAL_SECONDS = 10.0
WHILE_AWAY_SECONDS = 1.0
INDEX_SECONDS = 1.0
SAY_SECONDS = 1.0

OpenLag = Callable[[], AbstractAsyncContextManager[LagReader]]
AskIndex = Callable[[], Awaitable[None]]
SayHalted = Callable[[str, int], Awaitable[None]]  # takes why, and since when in milliseconds since 1970

log = logging.getLogger(__name__)


def start_probe(
    health: Health, open_lag: OpenLag, ask_index: AskIndex, keyed_topic: str, say_halted: SayHalted
) -> None:
    """Keep `health.lags`, `.away` and `.refused` up to date, and say a halt, until the process ends.

    The worker's own Kafka client does not notice an outage while it has no work, and its record of what
    is committed may be wrong. So the probe has its own thread, event loop and connections.

    Args:
        health: The state to update.
        open_lag: Connects to the broker.
        ask_index: Returns when the index answers, raises IndexUnavailableError when it does not.
        keyed_topic: The topic whose number of partitions must stay as it is.
        say_halted: Says to others that this worker is halted. It is called again and again while that lasts.
    """

    async def run() -> None:
        await asyncio.gather(_poll(health, open_lag, ask_index, keyed_topic), _say(health, say_halted))

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
        except (KafkaUnreachableError, SettingsError) as error:
            health.find_away(str(error))
        except Exception:  # go on after any error: without this thread the last results would stay in `health` forever
            log.exception("cannot read consumer lag or reach the index")
        await asyncio.sleep(WHILE_AWAY_SECONDS)


async def _say(health: Health, say_halted: SayHalted) -> None:
    """Say every second that the worker is halted, from the moment on when it is."""
    since_ms, failure = 0, ""
    while True:
        if health.halted:
            since_ms = since_ms or time.time_ns() // 1_000_000
            try:
                await say_halted(health.halted, since_ms)
                failure = ""
            except (IndexUnavailableError, SettingsError) as error:
                if str(error) != failure:
                    failure = str(error)
                    log.warning("others are not told that this worker is halted: %s", failure)
            except Exception:  # go on after any error, as above
                log.exception("others are not told that this worker is halted")
        await asyncio.sleep(SAY_SECONDS)


async def _index_error(ask_index: AskIndex) -> str:
    """Return why the index does not answer, or an empty text."""
    try:
        async with asyncio.timeout(INDEX_SECONDS):
            await ask_index()
    except TimeoutError:
        return f"Redis does not answer within {INDEX_SECONDS:g} s"
    except (IndexUnavailableError, SettingsError) as error:
        return str(error)
    return ""
