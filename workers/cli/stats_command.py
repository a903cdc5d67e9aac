"""Show how large an index is."""

import argparse
import asyncio
from dataclasses import replace
from functools import partial

from nearstream.workers.cli.stats_report import index_lines, index_object, shard_lines, shard_object
from nearstream.workers.config.exit_codes import Exit
from nearstream.workers.config.settings import Settings
from nearstream.workers.operations.terminal import print_json, print_line
from nearstream.workers.pipeline.deployment import Deployment
from nearstream.workers.redis_index.address import IndexAddress
from nearstream.workers.redis_index.client import until_answered
from nearstream.workers.redis_index.index import RedisIndex
from nearstream.workers.redis_index.stats import ShardFacts, index_facts
from nearstream.workers.redis_index.totals import Totals, totals


def show_stats(settings: Settings, options: argparse.Namespace) -> Exit:
    """Print what an operator asks of an index, or the internals of each shard."""
    address = replace(Deployment.of(settings).index_address(), beside=True)
    shards, whole = asyncio.run(_read(address, options.timeout))
    if options.internals:
        _print_internals(shards, address, is_json=options.json)
    elif options.json:
        print_json(index_object(shards, whole, address.scheme, settings.retention_seconds))
    else:
        name = f"{address.namespace}, scheme {address.scheme}"
        for line in index_lines(shards, whole, name, settings.retention_seconds):
            print_line(line)
    return Exit.OK


async def _read(address: IndexAddress, wait_seconds: float) -> tuple[tuple[ShardFacts, ...], Totals]:
    index = await until_answered(partial(RedisIndex.open_to_read, address), wait_seconds)
    try:
        return await index_facts(index), await totals(index)
    finally:
        await index.close()


def _print_internals(shards: tuple[ShardFacts, ...], address: IndexAddress, *, is_json: bool) -> None:
    for number, shard in enumerate(shards):
        if is_json:
            print_json(shard_object(shard, address.scheme, number))
        else:
            of_shards = f", shard {number} of {len(shards)}" if len(shards) > 1 else ""
            for line in shard_lines(shard, f"{address.namespace}, scheme {address.scheme}{of_shards}"):
                print_line(line)
