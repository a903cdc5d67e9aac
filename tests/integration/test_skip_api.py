"""`GET /v1/skip` answers from the decisions in Redis, and lets every page be fetched while Redis does not answer."""

import asyncio
from datetime import datetime, timedelta
from pathlib import Path
from urllib.parse import quote

from tests.devstack.redis import redis_server
from tests.devstack.server import running
from tests.support.api import HASTY_SECONDS, Api, served
from tests.support.decisions import NOW, decision, write
from tests.support.deployment import until

URL = "https://a.example/flood"


async def ask(api: Api, url: str, rest: str = "") -> dict[str, object]:
    status, answer = await api.send("GET", f"/v1/skip?url={quote(url, safe='')}{rest}")
    assert status == 200, answer
    return answer


async def test_a_page_is_skipped_under_all_of_its_urls_and_what_names_none_is_refused(redis_url: str) -> None:
    async with served(redis_url) as api:
        await write(api, decision(URL, "skip", 1), decision(URL + "/2", "keep", -1), decision(URL + "/3", "refresh", 1))
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
            (f"?url={'x' * 4097}", "invalid_message"),
        ):
            status, answer = await api.send("GET", "/v1/skip" + query)
            assert (status, answer["error"]) == (400, error)
        _, metrics = await api.get("/metrics")
        assert b'nearstream_skip_requests_total{answer="skip"} ' in metrics


async def test_a_token_asks_about_its_collections(redis_url: str) -> None:
    token = "a-token-of-twenty-characters"  # noqa: S105 - of the test
    async with served(redis_url, api_token=f"{token} pages") as api:
        await write(api, decision(URL, "keep", 1, "pages"))
        headers = {"Authorization": f"Bearer {token}"}
        path = f"/v1/skip?url={quote(URL, safe='')}"
        status, answer = await api.send("GET", path, **headers)
        assert (status, answer["error"]) == (403, "collection_forbidden")
        assert (await api.send("GET", path + "&collection=pages", Authorization="Bearer another"))[0] == 401
        assert (await api.send("GET", path + "&collection=pages", **headers))[1]["skip"] is True


async def test_every_page_may_be_fetched_while_redis_does_not_answer(tmp_path: Path) -> None:
    with running(redis_server(tmp_path)) as redis:
        async with served(f"redis://{redis.address}/0", api_seconds=str(HASTY_SECONDS)) as api:

            async def is_skipped() -> bool:
                return (await ask(api, URL))["skip"] is True

            await write(api, decision(URL, "skip", 1))
            await until(is_skipped)
            redis.pause()
            answers = await asyncio.gather(*(ask(api, URL) for _ in range(400)))  # while Redis does not answer
            assert {(answer["skip"], answer["degraded"]) for answer in answers} == {(False, True)}
            assert {answer["reason"] for answer in answers} <= {"deadline", "index_unavailable"}
            redis.resume()
            await until(is_skipped)
            await asyncio.to_thread(redis.kill)
            answer = await ask(api, URL)
            assert (answer["skip"], answer["degraded"]) == (False, True)
