"""What a crawler may skip and what is due, from the decisions in Redis, or all while Redis does not answer."""

import asyncio
import json
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, cast
from urllib.parse import quote

from nearstream.workers.http.pages import MANY_AT_ONCE
from nearstream.workers.redis.kept.decisions import DecisionStore
from tests.devstack.redis import redis_server
from tests.devstack.server import running
from tests.support.api import HASTY_SECONDS, Api, served
from tests.support.decisions import NOW, forget, page_state, store_states, write
from tests.support.deployment import until

URL = "https://a.example/flood"


async def ask_many(api: Api, *urls: str, **rest: object) -> tuple[int, list[dict[str, Any]]]:
    status, answer = await api.send("POST", "/v1/skip", json.dumps({"urls": urls, **rest}))
    return status, cast(list[dict[str, Any]], answer.get("pages", [answer]))


async def due(api: Api, host: str, rest: str = "") -> list[str]:
    """Return the names of the pages of a host that are due."""
    status, answer = await api.send("GET", f"/v1/due?host={host}{rest}")
    assert (status, answer["degraded"], answer["reason"]) == (200, False, "")
    return [page["lineage"] for page in cast(list[dict[str, Any]], answer["pages"])]


async def ask(api: Api, url: str, rest: str = "") -> dict[str, object]:
    status, answer = await api.send("GET", f"/v1/skip?url={quote(url, safe='')}{rest}")
    assert status == 200, answer
    return answer


async def test_a_page_is_skipped_under_all_of_its_urls_and_what_names_none_is_refused(redis_url: str) -> None:
    async with served(redis_url) as api:
        await write(
            api,
            page_state(URL, "copy", 1),
            page_state(URL + "/2", "unchanged", -1),
            page_state(URL + "/3", "changed", -1),
        )
        for url in (URL, URL + "?utm_source=mail", "HTTPS://A.example:443/flood#part"):
            answer = await ask(api, url)
            assert (answer["skip"], answer["lineage"], answer["action"]) == (True, URL, "skip")
            assert (answer["canonical"], answer["reason"]) == ("https://b.example/", "")
            assert datetime.fromisoformat(str(answer["until"])) == NOW + timedelta(days=1)
        assert ((await ask(api, URL + "/2"))["skip"], (await ask(api, URL + "/3"))["skip"]) == (False, False)
        unknown = await ask(api, "https://a.example/new")
        assert (unknown["skip"], unknown["action"], unknown["until"], unknown["canonical"]) == (False, None, None, None)
        for query, error in (
            ("", "bad_request"),
            ("?collection=pages", "bad_request"),
            ("?url=https://a.example/?a=1&b=2", "bad_request"),
            ("?url=x&collection=Pages", "invalid_message"),
            ("?url=", "invalid_message"),
            ("?url=a.example/flood", "invalid_message"),
            ("?url=//a.example/flood", "invalid_message"),
            ("?url=mailto:somebody@a.example", "invalid_message"),
            (f"?url={'x' * 4097}", "invalid_message"),
        ):
            status, answer = await api.send("GET", "/v1/skip" + query)
            assert (status, answer["error"]) == (400, error)
        _, metrics = await api.get("/metrics")
        assert b'nearstream_skip_requests_total{answer="skip"} ' in metrics


async def test_a_thousand_pages_are_asked_about_at_once_and_each_is_answered_as_by_itself(redis_url: str) -> None:
    urls = [f"{URL}/{number}" for number in range(994)] + [
        URL,
        URL + "?gclid=1",
        "https://none.example",
        URL,
        "ftp://none.example",
        "HTTPS://[::1]",
    ]
    async with served(redis_url) as api:
        for number in range(0, 994, 7):
            await write(api, page_state(f"{URL}/{number}", "copy" if number % 2 else "unchanged", number % 3 - 1))
        await write(api, page_state(URL, "copy", 1))
        store = DecisionStore(api.index.client, api.deployment.settings.namespace)
        await store_states(store, aliases={f"{URL}/1": URL})
        status, answers = await ask_many(api, *urls)
        assert status == 200
        alone = [await ask(api, url) for url in (*urls[:30], *urls[-6:])]
        assert answers[:30] + answers[-6:] == alone
        assert [answer["skip"] for answer in answers[-6:]] == [True, True, False, True, False, False]
        assert answers[1]["lineage"] == URL
        assert answers[1]["until"] == answers[-6]["until"]
        for body in (
            {"urls": [*urls, URL]},
            {"urls": []},
            {"urls": URL},
            {"url": URL},
            {"urls": [URL], "x": 1},
            {"urls": [URL, None]},
            {"urls": [URL], "collection": "Pages"},
            {"urls": ["x" * 4097]},
            {"urls": [URL, "HTTPS://[::1"]},
            [URL],
        ):
            status, answer = await api.send("POST", "/v1/skip", json.dumps(body))
            assert (status, answer["error"]) == (400, "invalid_message"), body
        for raw, expected in (
            (b"{", 400),
            (b"", 400),
            (b'{"urls":["\xff"]}', 400),
            (rb'{"urls":["\ud800"]}', 400),
            (b"[" * 100_000, 400),
            (b" " * 1_048_577, 413),
        ):
            status, _ = await api.send("POST", "/v1/skip", raw)
            assert status == expected


async def test_questions_about_many_pages_beyond_a_bound_are_refused(redis_url: str) -> None:
    urls = [f"https://{number}.example/{'?' * 900}" for number in range(100)]  # which take long to be read
    async with served(redis_url) as api:
        answers = await asyncio.gather(*(ask_many(api, *urls) for _ in range(MANY_AT_ONCE + 4)))
        busy = [answer for status, (answer, *_) in answers if status == 429]
        assert [answer["error"] for answer in busy] == ["busy"] * 4
        assert [len(found) for status, found in answers if status == 200] == [100] * MANY_AT_ONCE


async def test_pages_that_are_due_are_listed_error_pages_first(redis_url: str) -> None:
    async with served(redis_url) as api:
        names = [f"https://www.a.example/{name}" for name in ("later", "older", "newer", "wall", "refreshed")]
        waits = ("unchanged", 2), ("unchanged", -3), ("copy", -1), ("error_page", -2), ("changed", -2)
        made = [page_state(name, *wait) for name, wait in zip(names, waits, strict=True)]  # type: ignore[arg-type]
        await write(
            api, *made, page_state("https://b.example/", "unchanged", -1), page_state("no-url", "unchanged", -1)
        )
        await write(api, page_state(names[1], "unchanged", -1, "news"))
        for host in ("a.example", "WWW.a.example:80"):
            assert await due(api, host) == [names[3], names[1], names[4], names[2]]
        assert await due(api, "a.example", "&limit=2") == [names[3], names[1]]
        assert await due(api, "a.example", "&collection=news") == [names[1]]
        assert await due(api, "c.example") == []
        await write(api, page_state(names[3], "unchanged", 1), page_state(names[4], "unchanged", -9))
        store = DecisionStore(api.index.client, api.deployment.settings.namespace)
        await forget(store, names[1])
        assert await due(api, "a.example") == [names[4], names[2]]
        for query in (
            "",
            "?host=",
            "?host=a/b",
            "?host=u@a.example",
            "?host=%5B",
            f"?host={'a' * 254}",
            "?host=a&limit=0",
            "?host=a&limit=1001",
            "?host=a&limit=-1",
            "?host=a&limit=%C2%B2",
            "?host=a&x=1",
            "?host=a&collection=A",
        ):
            assert (await api.send("GET", "/v1/due" + query))[0] == 400, query


async def test_a_token_asks_about_its_collections(redis_url: str) -> None:
    token = "a-token-of-twenty-characters"  # noqa: S105 - of the test
    async with served(redis_url, api_token=f"{token} pages") as api:
        await write(api, page_state(URL, "unchanged", 1, "pages"))
        headers = {"Authorization": f"Bearer {token}"}
        path = f"/v1/skip?url={quote(URL, safe='')}"
        status, answer = await api.send("GET", path, **headers)
        assert (status, answer["error"]) == (403, "collection_forbidden")
        assert (await api.send("GET", path + "&collection=pages", Authorization="Bearer another"))[0] == 401
        assert (await api.send("GET", path + "&collection=pages", **headers))[1]["skip"] is True
        body = json.dumps({"urls": [URL]})
        for method, where, sent in (("POST", "/v1/skip", body), ("GET", "/v1/due?host=a.example", "")):
            assert (await api.send(method, where, sent, Authorization="Bearer another"))[0] == 401
            assert (await api.send(method, where, sent, **headers))[0] == 403


async def test_every_page_may_be_fetched_while_redis_does_not_answer(tmp_path: Path) -> None:
    with running(redis_server(tmp_path)) as redis:
        async with served(f"redis://{redis.address}/0", api_seconds=str(HASTY_SECONDS)) as api:

            async def is_skipped() -> bool:
                return (await ask(api, URL))["skip"] is True

            await write(api, page_state(URL, "copy", 1))
            await until(is_skipped)
            redis.pause()
            answers = await asyncio.gather(*(ask(api, URL) for _ in range(400)))  # while Redis does not answer
            assert {(answer["skip"], answer["degraded"]) for answer in answers} == {(False, True)}
            assert {answer["reason"] for answer in answers} <= {"deadline", "index_unavailable"}
            _, pages = await ask_many(api, URL, URL)
            assert [(page["skip"], page["degraded"]) for page in pages] == [(False, True)] * 2
            _, overdue = await api.send("GET", "/v1/due?host=a.example")
            assert (overdue["pages"], overdue["degraded"]) == ([], True)
            redis.resume()
            await until(is_skipped)
            await asyncio.to_thread(redis.kill)
            answer = await ask(api, URL)
            assert (answer["skip"], answer["degraded"]) == (False, True)
