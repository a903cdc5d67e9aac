"""Watch Redis and the workers for the live page."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

from nearstream.streams.store.limits import IndexUnavailableError
from nearstream.workers.config.settings import SettingsError
from nearstream.workers.live.feed import Feed
from nearstream.workers.live.kafka_source import say_ended
from nearstream.workers.redis_index.client import Caller
from nearstream.workers.redis_index.worker_states import worker_states

_WATCH_SECONDS = 0.5
_ANSWER_SECONDS = 2.0


@asynccontextmanager
async def watching_redis(client: Caller, namespace: str, feed: Feed) -> AsyncIterator[None]:
    """Keep `feed.workers`, and the entry of Redis in `feed.away`, up to date while the block runs."""
    task = asyncio.create_task(_watch(client, namespace, feed))
    task.add_done_callback(partial(say_ended, feed))
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait([task])


async def _watch(client: Caller, namespace: str, feed: Feed) -> None:
    while True:
        try:
            async with asyncio.timeout(_ANSWER_SECONDS):
                feed.workers = await worker_states(client, namespace)
            feed.away.pop("Redis", None)
        except TimeoutError:
            feed.away["Redis"] = f"Redis does not answer within {_ANSWER_SECONDS:g} s"
        except (IndexUnavailableError, SettingsError) as error:
            feed.away["Redis"] = str(error)
        await asyncio.sleep(_WATCH_SECONDS)
