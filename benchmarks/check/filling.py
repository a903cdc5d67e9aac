"""Fill an index with many documents, as workers do."""

import asyncio
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

from benchmarks.check.texts import arrivals
from nearstream.schemas.topics.table import SIGNATURES
from nearstream.workers.config.settings import load
from nearstream.workers.pipeline.deployment import Deployment
from nearstream.workers.redis.index.index import RedisIndex

_BATCH = 32
_PARTS = 2  # partitions with documents, those of each are matched by a process


def fill(environment: dict[str, str], documents: int) -> float:
    """Match this many documents and return how many of them a second."""
    asyncio.run(_create(environment))
    began = time.perf_counter()
    with ProcessPoolExecutor(_PARTS, get_context("spawn")) as processes:
        for part in [processes.submit(_fill_part, environment, documents, each) for each in range(_PARTS)]:
            part.result()
    return documents / (time.perf_counter() - began)


async def _create(environment: dict[str, str]) -> None:
    index = await RedisIndex.open(
        Deployment.of(load(environment)).index_address(), partitions=SIGNATURES.partitions, may_create=True
    )
    await index.close()


def _fill_part(environment: dict[str, str], documents: int, part: int) -> None:
    asyncio.run(_match_part(Deployment.of(load(environment)), documents, part))


async def _match_part(deployment: Deployment, documents: int, part: int) -> None:
    """Match the documents of one partition: every `_PARTS`th batch."""
    index = await RedisIndex.open(deployment.index_address(), partitions=SIGNATURES.partitions, may_create=False)
    matcher = deployment.matcher(index.store())
    for first in range(part * _BATCH, documents, _PARTS * _BATCH):
        numbers = range(first, min(first + _BATCH, documents))
        await matcher.match_all(list(arrivals(deployment.scheme, deployment.key, numbers, part)))
    await index.close()
