"""Fill an index with many documents, through its own functions but without comparisons."""

import asyncio
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

from benchmarks.check.texts import admissions
from benchmarks.index.__main__ import settle
from nearstream.workers.config.settings import load
from nearstream.workers.pipeline.deployment import Deployment
from nearstream.workers.redis_index.index import RedisIndex

_BATCH = 32
_PARTS = 2  # partitions, each of which a process fills


def fill(environment: dict[str, str], documents: int) -> float:
    """Admit this many documents and return how many of them a second.

    Each joins the family that the index presumes (`benchmarks.index.settlements`).
    """
    asyncio.run(_create(environment))
    began = time.perf_counter()
    with ProcessPoolExecutor(_PARTS, get_context("spawn")) as processes:
        for part in [processes.submit(_fill_part, environment, documents, each) for each in range(_PARTS)]:
            part.result()
    return documents / (time.perf_counter() - began)


async def _create(environment: dict[str, str]) -> None:
    index = await RedisIndex.open(Deployment.of(load(environment)).index_address(), may_create=True)
    await index.close()


def _fill_part(environment: dict[str, str], documents: int, part: int) -> None:
    asyncio.run(_admit_part(Deployment.of(load(environment)), documents, part))


async def _admit_part(deployment: Deployment, documents: int, part: int) -> None:
    """Admit the documents of one partition: every `_PARTS`th batch."""
    index = await RedisIndex.open(deployment.index_address(), may_create=False)
    for first in range(part * _BATCH, documents, _PARTS * _BATCH):
        numbers = range(first, min(first + _BATCH, documents))
        batch = list(admissions(deployment.scheme, deployment.key, numbers, part))
        await settle(index, batch, await index.admit(batch))
    await index.close()
