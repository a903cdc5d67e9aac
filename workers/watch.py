"""Asks the broker how far the group is, the index whether it answers: from a thread with a loop of its own."""

import asyncio
import logging
import threading
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager

from streams.index import IndexUnavailableError
from workers.health import Health
from workers.kafka_lag import LagReader
from workers.kafka_tools import KafkaUnreachableError
from workers.settings import SettingsError

INTERVAL_SECONDS = 10.0
WHILE_AWAY_SECONDS = 1.0
INDEX_SECONDS = 1.0

OpenLag = Callable[[], AbstractAsyncContextManager[LagReader]]
AskIndex = Callable[[], Awaitable[None]]

log = logging.getLogger("nearstream.watch")


def start_watch(health: Health, open_lag: OpenLag, ask_index: AskIndex) -> None:
    """Keeps `health.lags` and `health.away` true until the process ends.

    The client in the event loop of the worker would not notice an absence while it has no work, and
    its own account of what is committed may be wrong.

    Args:
        health: What is written.
        open_lag: Connects to the broker.
        ask_index: Returns when the index answers; raises IndexUnavailableError when not.
    """
    threading.Thread(target=lambda: asyncio.run(_watch(health, open_lag, ask_index)), name="watch", daemon=True).start()


async def _watch(health: Health, open_lag: OpenLag, ask_index: AskIndex) -> None:
    while True:
        try:
            async with open_lag() as read_lag:
                while True:
                    health.lags = tuple(await read_lag())
                    health.find_away(await _index_away(ask_index))
                    await asyncio.sleep(WHILE_AWAY_SECONDS if health.away else INTERVAL_SECONDS)
        except (KafkaUnreachableError, SettingsError) as error:
            health.find_away(str(error))
        except Exception:  # whatever it is, a thread that ended would leave the last answers standing for ever
            log.exception("the group's lag, or whether the index answers, cannot be told")
        await asyncio.sleep(WHILE_AWAY_SECONDS)


async def _index_away(ask_index: AskIndex) -> str:
    try:
        async with asyncio.timeout(INDEX_SECONDS):
            await ask_index()
    except TimeoutError:
        return f"Redis does not answer within {INDEX_SECONDS:g} s"
    except (IndexUnavailableError, SettingsError) as error:
        return str(error)
    return ""
