"""The live page gets the events of real workers, and of the demo in one process."""

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
import time
from contextlib import suppress
from functools import partial
from pathlib import Path
from unittest.mock import patch

import aiohttp
from msgspec.json import encode

from nearstream.schemas.alerts.alert import Silence
from nearstream.schemas.documents.document import from_milliseconds
from nearstream.schemas.documents.record import ProducerRecord
from nearstream.schemas.topics.table import DOCUMENTS, SILENCES, VERDICTS
from nearstream.workers.config.settings import load
from nearstream.workers.http.learning import connected
from nearstream.workers.http.live import sources
from nearstream.workers.http.live.feed import Feed
from nearstream.workers.http.live.sources import fed_by_kafka, say_ended
from nearstream.workers.http.operator import replay_reason, say_in_kafka
from nearstream.workers.kafka.errors import KafkaUnreachableError
from nearstream.workers.pipeline.deployment import Deployment
from tests.support.deployment import TEXTS, deployed, stop, until
from tests.support.forking import started
from tests.support.live import alert, live_server

VERDICT = Path(__file__).parents[2] / "schemas/examples/verdict.json"


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


async def test_what_workers_find_arrives_with_their_lag(kafka: str, redis_url: str, tmp_path: Path) -> None:
    async with deployed(kafka, redis_url, tmp_path) as deployment:
        feed = Feed(lambda: 0)
        with deployment.worker():
            await deployment.send([deployment.document("a", TEXTS[0])])
            async with fed_by_kafka(deployment.settings, feed, 0), live_server(feed) as server:

                async def has(kinds: dict[str, int]) -> bool:
                    return feed.state("").totals == kinds

                await until(lambda: has({"verdict": 1}))
                await deployment.send([deployment.document("b", TEXTS[0])])
                await until(lambda: has({"verdict": 2, "exact_duplicate": 1}))

                async def knows_the_lag() -> bool:
                    return feed.lag is not None and feed.lag.records == 0

                await until(knows_the_lag)
                _, state = await server.get("/v1/live")
                assert (state["connected"], state["why"]) == (True, "")
                (family,) = feed.state("").largest
                assert (family.founder, family.size) == ("a", 2)
        again = Feed(_now_ms)
        with patch.object(sources, "PAST_RECORDS", 10):  # of each partition
            async with fed_by_kafka(deployment.settings, again, None):

                async def is_equal() -> bool:
                    state = again.state("")
                    return state.totals == feed.state("").totals and state.loading is None and sum(state.day) == 2

                await until(is_equal)
                assert [each.founder for each in again.state("").growing] == ["a"]
        until_ms = _now_ms() + 3_600_000
        said = Silence(
            collection="news",
            name="duplicate_storm",
            subject="f",
            since=from_milliseconds(_now_ms()),
            until=from_milliseconds(until_ms),
        )
        async with connected(deployment.settings) as outbox:

            async def is_said() -> bool:
                with suppress(KafkaUnreachableError):  # until the outbox is connected
                    await say_in_kafka(outbox, deployment.topic(SILENCES), b"news/duplicate_storm/f", encode(said))
                    return True
                return False

            await until(is_said)
        later = Feed(_now_ms)
        async with fed_by_kafka(deployment.settings, later, None):

            async def is_silent() -> bool:
                return later.alarms.silences([alert("f", since_ms=_now_ms())], _now_ms()) == (said,)

            await until(is_silent)
        bounded = Feed(_now_ms)
        with patch.object(sources, "PAST_RECORDS", 0):
            async with fed_by_kafka(deployment.settings, bounded, None):

                async def is_connected() -> bool:
                    return bounded.state("").connected

                await until(is_connected)
                assert (bounded.state("").totals, bounded.loading) == ({}, None)


async def test_alerts_and_dead_letters_of_workers_are_shown_and_sent_again(
    kafka: str, redis_url: str, tmp_path: Path
) -> None:
    rules = tmp_path / "alerts.toml"
    rules.write_text(
        "[duplicate_storm]\nlimit = 2\nwindow_seconds = 600\n[dead_letters]\nlimit = 2\nwindow_seconds = 600\n"
    )
    async with deployed(kafka, redis_url, tmp_path, alerts=str(rules)) as deployment:
        feed, replay = Feed(_now_ms), partial(replay_reason, Deployment.of(deployment.settings))
        async with fed_by_kafka(deployment.settings, feed, 0), live_server(feed, replay=replay) as server:
            with deployment.worker(), deployment.worker("alert"):
                broken = [
                    ProducerRecord(deployment.topic(DOCUMENTS), b"key", b"{%d" % number, []) for number in range(3)
                ]
                await deployment.send([*(deployment.document(name, TEXTS[0]) for name in "abcd"), *broken])

                async def is_told() -> bool:
                    return {alert.name for alert in feed.state("").alerts} == {"duplicate_storm", "dead_letters"}

                await until(is_told)
                (family,) = feed.state("").largest
                assert family.is_storm
                letters = feed.letters.shown(feed.now_ms())
                assert [(each.reason, each.count) for each in letters.reasons] == [("not_json", 3)]
                detail = feed.letters.detail(letters.letters[0].id)
                assert detail is not None
                assert bytes.fromhex(detail.value) in {b"{%d" % number for number in range(3)}
                for is_dry_run in (True, False):
                    body = {"reason": "not_json", "dry_run": is_dry_run}
                    async with server.session.post(f"http://{server.address}/v1/replay", json=body) as response:
                        assert (response.status, (await response.json())["sent"]) == (200, 3)

                async def came_back() -> bool:
                    return feed.letters.shown(feed.now_ms()).reasons[0].count == 6

                await until(came_back)
                assert {letter.replays for letter in feed.letters.shown(feed.now_ms()).letters} == {0, 1}


async def test_without_kafka_the_page_says_so() -> None:
    feed = Feed(lambda: 0)
    async with fed_by_kafka(load({"NEARSTREAM_KAFKA": "127.0.0.1:1"}), feed, None):
        assert not feed.state("").connected
        assert feed.state("").why


def _demo(*options: str, **settings: str) -> subprocess.Popen[bytes]:
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("NEARSTREAM_")}
    environment = inherited | {f"NEARSTREAM_{name.upper()}": value for name, value in settings.items()}
    command = [sys.executable, "-m", "nearstream", "demo", "--live", *options]
    return started(command, environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)


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

            await until(grows)
            async with session.get(f"{address.decode()}v1/events?recent=5") as response:
                assert b"id: " in await response.content.readuntil(b"\n\n") + await response.content.readuntil(b"\n\n")
                process.send_signal(signal.SIGINT)
                assert await asyncio.to_thread(process.wait, 60) == 0
    finally:
        stop(process)


async def test_no_time_that_a_writer_gives_stops_the_page(kafka: str, redis_url: str, tmp_path: Path) -> None:
    whole = json.loads(VERDICT.read_bytes())
    times = ["0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00", "9999-12-31T23:59:59Z", "soon", ""]
    async with deployed(kafka, redis_url, tmp_path) as deployment:

        def record(number: int, sent_at: str) -> ProducerRecord:
            value = json.dumps({**whole, "event_id": f"{number:032x}", "id": f"d-{number}"}).encode()
            return ProducerRecord(deployment.topic(VERDICTS), b"default/d", value, [("ce_time", sent_at.encode())])

        await deployment.send([record(number, sent_at) for number, sent_at in enumerate(times)])
        await deployment.send([record(len(times), "")])
        feed = Feed(_now_ms)
        async with fed_by_kafka(deployment.settings, feed, 0):

            async def has_all() -> bool:
                return feed.state("").totals == {"verdict": len(times) + 1}

            await until(has_all)
            # All but the one that says it comes from before 1970 are among the verdicts of the last hour.
            assert sum(feed.state("").verdicts["near_duplicate"]) == len(times)
            assert feed.state("").connected


async def test_the_page_says_that_its_source_has_failed() -> None:
    async def fail() -> None:
        raise LookupError

    feed = Feed(lambda: 0)
    feed.why = ""
    task = asyncio.create_task(fail())
    task.add_done_callback(partial(say_ended, feed))
    await asyncio.wait([task])
    await asyncio.sleep(0)
    state = feed.state("")
    assert not state.connected
    assert "has failed" in state.why
