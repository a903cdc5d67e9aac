"""Dead letters and their replay are for those who may see all collections."""

import asyncio
import json
from collections import Counter

from nearstream.schemas.alerts.alert import ALL_COLLECTIONS
from nearstream.workers.kafka.errors import KafkaUnreachableError
from tests.support.live import NOW_MS, Sent, Server, alert, dead_letter, live_server, new_feed

MAIL, ALL_TOKEN = "a-token-for-mail-only", "a-token-for-all-of-them"
TOKENS = f"{MAIL} mail\n{ALL_TOKEN} *"
PATHS = ("/v1/dead-letters", "/v1/dead-letters/00ff")


class Replays:
    """Answers replays, and remembers what was asked."""

    def __init__(self, error: Exception | None = None) -> None:
        self.asked: list[tuple[str, bool]] = []
        self.may_end = asyncio.Event()
        self.may_end.set()
        self._error = error

    async def __call__(self, reason: str, is_dry_run: bool) -> Counter[str]:
        self.asked.append((reason, is_dry_run))
        await self.may_end.wait()
        if self._error is not None:
            raise self._error
        return Counter({"sent": 3, "too large": 2})


async def _post(server: Server, body: object, **headers: str) -> tuple[int, dict[str, object]]:
    url = f"http://{server.address}/v1/replay"
    async with server.session.post(url, data=json.dumps(body), headers=headers) as response:
        return response.status, await response.json()


def _bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


async def test_a_token_for_some_collections_sees_and_replays_none() -> None:
    feed, replays = new_feed(), Replays()
    feed.letters.add(dead_letter(b"{"))
    feed.alarms.add(alert("not_json", name="dead_letters", collection=ALL_COLLECTIONS))
    feed.alarms.add(alert("f", collection="mail"))
    feed.alarms.add(alert("g", collection="news"))
    asked = {"reason": "not_json", "dry_run": False}
    async with live_server(feed, TOKENS, replay=replays) as server:
        for path in PATHS:
            assert (await server.get(path))[0] == 401
            assert (await server.get(path, **_bearer(MAIL)))[0] == 403
        assert (await _post(server, asked))[0] == 401
        assert (await _post(server, asked, **_bearer(MAIL)))[0] == 403
        assert replays.asked == []
        _, state = await server.get("/v1/live", **_bearer(MAIL))
        assert state["dead_letters_1h"] is None
        assert [each["subject"] for each in json.loads(json.dumps(state["alerts"]))] == ["f"]
        assert (await server.get(PATHS[0], **_bearer(ALL_TOKEN)))[0] == 200
        _, state = await server.get("/v1/live", **_bearer(ALL_TOKEN))
        assert state["dead_letters_1h"] == 1
        assert len(json.loads(json.dumps(state["alerts"]))) == 3


async def test_a_page_of_another_site_replays_nothing() -> None:
    replays, asked = Replays(), {"reason": "not_json", "dry_run": False}
    async with live_server(new_feed(), replay=replays) as server:
        assert (await _post(server, asked, Origin="https://evil.example"))[0] == 403
        assert (await _post(server, asked, Host="evil.example"))[0] == 403
        for wrong in ({}, {"reason": "x"}, {"reason": "", "dry_run": True}, {**asked, "more": 1}, [], "x" * 2000):
            assert (await _post(server, wrong))[0] in (400, 413)
    assert replays.asked == []


async def test_one_replay_runs_at_a_time() -> None:
    replays, asked = Replays(), {"reason": "not_json", "dry_run": False}
    replays.may_end.clear()
    async with live_server(new_feed(), replay=replays) as server, asyncio.timeout(60):
        first = asyncio.create_task(_post(server, asked))
        while not replays.asked:
            await asyncio.sleep(0.01)
        status, answer = await _post(server, asked)
        assert (status, answer["error"]) == (429, "busy")
        replays.may_end.set()
        answered = (200, {"sent": 3, "skipped": {"too large": 2}})
        assert [await first, await _post(server, asked)] == [answered, answered]


async def test_a_replay_that_fails_says_so() -> None:
    async with live_server(new_feed(), replay=Replays(KafkaUnreachableError("no broker"))) as server:
        assert (await _post(server, {"reason": "not_json", "dry_run": True}))[0] == 503


async def test_without_kafka_there_is_no_replay_but_letters_are_shown() -> None:
    feed = new_feed()
    stored = dead_letter(b"{broken", written_ms=NOW_MS)
    feed.letters.add(stored)
    async with live_server(feed) as server:
        assert (await _post(server, {"reason": "not_json", "dry_run": True}))[0] in (404, 405)
        status, detail = await server.get(f"/v1/dead-letters/{stored.dead_id}")
        assert (status, detail["value"]) == (200, b"{broken".hex())
        assert (await server.get("/v1/dead-letters/unknown"))[0] == 404


async def test_an_alert_is_silenced_by_who_may_see_all_and_said_in_kafka() -> None:
    feed, sent = new_feed(), Sent()
    feed.alarms.add(alert("f"))
    asked = {"collection": "news", "name": "duplicate_storm", "subject": "f", "hours": 4}

    async with live_server(feed, TOKENS, outbox=sent) as server:

        async def silence(body: object, token: str = ALL_TOKEN, **headers: str) -> int:
            url = f"http://{server.address}/v1/silences"
            async with server.session.post(url, data=json.dumps(body), headers={**_bearer(token), **headers}) as answer:
                return answer.status

        assert [await silence({**asked, "hours": hours}) for hours in (4, None, 0)] == [200] * 3
        assert [record.value is None for record in sent.records] == [False, False, True]
        assert {(record.topic, record.key) for record in sent.records} == {("silences", b"news/duplicate_storm/f")}
        assert [await silence(body) for body in ({}, {**asked, "hours": 169}, "x" * 5_000)] == [400, 400, 413]
        assert await silence(asked, MAIL) == await silence(asked, Origin="https://other.example") == 403
    assert len(sent.records) == 3
