"""The live page gets the events of real workers, and of the demo in one process."""

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import aiohttp

from nearstream.workers.config.settings import load
from nearstream.workers.live.feed import Feed
from nearstream.workers.live.kafka_source import fed_by_kafka
from tests.support.deployment import TEXTS, deployed, stop, until
from tests.support.live import live_server


async def test_what_workers_find_arrives_with_their_lag(kafka: str, redis_url: str, tmp_path: Path) -> None:
    async with deployed(kafka, redis_url, tmp_path) as deployment:
        feed = Feed(20, lambda: 0)
        with deployment.worker():
            await deployment.send([deployment.document("a", TEXTS[0])])
            async with fed_by_kafka(deployment.settings, feed, 0), live_server(feed) as server:

                async def has(kinds: dict[str, int]) -> bool:
                    return feed.state("").totals == kinds

                await until(lambda: has({"verdict": 1}), 60)
                await deployment.send([deployment.document("b", TEXTS[0])])
                await until(lambda: has({"verdict": 2, "exact_duplicate": 1}), 60)

                async def knows_the_lag() -> bool:
                    return feed.lag is not None and feed.lag.records == 0

                await until(knows_the_lag, 60)
                _, state = await server.get("/v1/live")
                assert (state["connected"], state["why"]) == (True, "")
                (family,) = feed.state("").largest
                assert (family.founder, family.size) == ("a", 2)
        again = Feed(20, lambda: 0)
        async with fed_by_kafka(deployment.settings, again, 0):

            async def is_equal() -> bool:
                return again.state("").totals == feed.state("").totals

            await until(is_equal, 60)


async def test_without_kafka_the_page_says_so() -> None:
    feed = Feed(20, lambda: 0)
    async with fed_by_kafka(load({"NEARSTREAM_KAFKA": "127.0.0.1:1"}), feed, None):
        assert not feed.state("").connected
        assert feed.state("").why


def _demo(*options: str) -> subprocess.Popen[bytes]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("NEARSTREAM_")}
    command = [sys.executable, "-m", "nearstream", "demo", "--live", *options]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)


async def test_the_demo_shows_a_day_until_it_is_stopped() -> None:
    process = _demo("--no-open", "--speed", "600")
    try:
        assert process.stdout is not None
        line = await asyncio.wait_for(asyncio.to_thread(process.stdout.readline), 120)
        (address,) = re.findall(rb"http://127\.0\.0\.1:\d+/", line)
        async with aiohttp.ClientSession() as session:

            async def grows() -> bool:
                async with session.get(f"{address.decode()}v1/live") as response:
                    state = json.loads(await response.read())
                return state["source"] == "demo" and any(family["is_storm"] for family in state["growing"])

            await until(grows, 120)
            async with session.get(f"{address.decode()}v1/events?recent=5") as response:
                assert b"id: " in await response.content.readuntil(b"\n\n") + await response.content.readuntil(b"\n\n")
                process.send_signal(signal.SIGINT)
                assert await asyncio.to_thread(process.wait, 60) == 0
    finally:
        stop(process)
