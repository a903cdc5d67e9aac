"""The live page gets the events of real workers."""

import asyncio
import json
import time
from contextlib import suppress
from functools import partial
from pathlib import Path
from unittest.mock import patch

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
from nearstream.workers.http.operator import replay_reason
from nearstream.workers.kafka.errors import KafkaUnreachableError
from nearstream.workers.pipeline.deployment import Deployment
from tests.support.deployment import TEXTS, LocalDeployment, deployed, until
from tests.support.live import Server, alert, live_server

VERDICT = Path(__file__).parents[2] / "schemas/examples/verdict.json"
ALERTS = ("duplicate_storm", "dead_letters")


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


async def test_what_workers_find_arrives_with_their_lag_alerts_and_dead_letters(
    kafka: str, redis_url: str, tmp_path: Path
) -> None:
    rules = tmp_path / "alerts.toml"
    rules.write_text("".join(f"[{name}]\nlimit = 2\nwindow_seconds = 600\n" for name in ALERTS))
    async with deployed(kafka, redis_url, tmp_path, alerts=str(rules)) as deployment:
        feed, replay = Feed(_now_ms), partial(replay_reason, Deployment.of(deployment.settings))
        with deployment.worker(), deployment.worker("alert"):
            await deployment.send([deployment.document("a", TEXTS[0])])
            async with fed_by_kafka(deployment.settings, feed), live_server(feed, replay=replay) as server:

                async def has_copies() -> bool:
                    return feed.state("").totals == {"verdict": 4, "exact_duplicate": 3}

                async def knows_the_lag() -> bool:
                    lag = feed.state("").lag
                    return lag is not None and lag.records == 0

                async def is_told() -> bool:
                    return {alert.name for alert in feed.state("").alerts} == set(ALERTS)

                await deployment.drained()
                await deployment.send([deployment.document(name, TEXTS[0]) for name in "bcd"])
                await until(has_copies)
                await until(knows_the_lag)
                _, state = await server.get("/v1/live")
                assert (state["connected"], state["why"]) == (True, "")
                topic = deployment.topic(DOCUMENTS)
                await deployment.send([ProducerRecord(topic, b"key", b"{%d" % number, []) for number in range(3)])
                await until(is_told)
                (family,) = feed.state("").largest
                assert (family.founder, family.size, family.is_storm) == ("a", 4, True)
                await _letters_are_sent_again(feed, server)
        await _reads_no_more_of_the_past_than_it_may(deployment, feed)
        await _keeps_silences(deployment)
        await _survives_any_time(deployment)


async def _letters_are_sent_again(feed: Feed, server: Server) -> None:
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


async def _reads_no_more_of_the_past_than_it_may(deployment: LocalDeployment, feed: Feed) -> None:
    again, bounded = Feed(_now_ms), Feed(_now_ms)

    async def is_equal() -> bool:
        state = again.state("")
        return state.totals == feed.state("").totals and state.loading is None

    async def is_connected() -> bool:
        return bounded.state("").connected

    with patch.object(sources, "PAST_RECORDS", 10):  # of each partition
        async with fed_by_kafka(deployment.settings, again):
            await until(is_equal)
            assert [each.founder for each in again.state("").growing] == ["a"]
    with patch.object(sources, "PAST_RECORDS", 0):
        async with fed_by_kafka(deployment.settings, bounded):
            await until(is_connected)
            assert (bounded.state("").totals, bounded.loading) == ({}, None)


async def _keeps_silences(deployment: LocalDeployment) -> None:
    since, end = (from_milliseconds(_now_ms() + hours * 3_600_000) for hours in (0, 1))
    said = Silence(collection="news", name="duplicate_storm", subject="f", since=since, until=end)
    feed = Feed(_now_ms)
    async with connected(deployment.settings) as outbox:

        async def is_said() -> bool:
            with suppress(KafkaUnreachableError):  # until the outbox is connected
                record = ProducerRecord(deployment.topic(SILENCES), b"news/duplicate_storm/f", encode(said), [])
                await outbox.send(record, 5.0)
                return True
            return False

        await until(is_said)

    async def is_silent() -> bool:
        return feed.alarms.said.of(alert("f", since_ms=_now_ms()), _now_ms()) == said

    async with fed_by_kafka(deployment.settings, feed):
        await until(is_silent)


async def _survives_any_time(deployment: LocalDeployment) -> None:
    """Let the page read verdicts that say they were sent at impossible times."""
    whole, feed = json.loads(VERDICT.read_bytes()), Feed(_now_ms)
    times = ["0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00", "9999-12-31T23:59:59Z", "soon", "", ""]
    for number, sent_at in enumerate(times):
        value = json.dumps({**whole, "event_id": f"{number:032x}", "id": f"d-{number}"}).encode()
        named = [("ce_time", sent_at.encode())]
        await deployment.send([ProducerRecord(deployment.topic(VERDICTS), b"default/d", value, named)])

    async def has_all() -> bool:
        return feed.state("").totals.get("verdict") == 4 + len(times)

    async with fed_by_kafka(deployment.settings, feed):
        await until(has_all)
        # All but the one that says it comes from before 1970 are among the verdicts of the last hour.
        assert sum(feed.state("").verdicts["near_duplicate"]) == len(times) - 1
        assert feed.state("").connected


async def test_without_kafka_the_page_says_so() -> None:
    feed = Feed(lambda: 0)
    async with fed_by_kafka(load({"NEARSTREAM_KAFKA": "127.0.0.1:1"}), feed):
        assert not feed.state("").connected
        assert feed.state("").why


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
