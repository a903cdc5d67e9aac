"""Poll consumer lag and index availability from a separate thread."""

import asyncio
import logging
import threading
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from functools import partial

from nearstream.streams.index.contract import IndexUnavailableError
from nearstream.workers.config.settings import SettingsError
from nearstream.workers.kafka.errors import KafkaUnreachableError
from nearstream.workers.kafka.lag import LagReader
from nearstream.workers.kafka.topics import WHY_FIXED
from nearstream.workers.monitoring.health import Health

INTERVAL_SECONDS = 10.0
WHILE_AWAY_SECONDS = 1.0
INDEX_SECONDS = 1.0

OpenLag = Callable[[], AbstractAsyncContextManager[LagReader]]
AskIndex = Callable[[], Awaitable[None]]

log = logging.getLogger(__name__)


def start_probe(health: Health, open_lag: OpenLag, ask_index: AskIndex, keyed_topic: str) -> None:
    """Keep `health.lags`, `.away` and `.refused` up to date until the process ends.

    The worker's own Kafka client does not notice an outage while it has no work, and its record of what
    is committed may be wrong. So the probe has its own thread, event loop and connections.

    Args:
        health: The state to update.
        open_lag: Connects to the broker.
        ask_index: Returns when the index answers, raises IndexUnavailableError when it does not.
        keyed_topic: The topic whose number of partitions must stay as it is.
    """
    polling = partial(_poll, health, open_lag, ask_index, keyed_topic)
    threading.Thread(target=lambda: asyncio.run(polling()), name="probe", daemon=True).start()


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
