"""Documents that the HTTP API hands to the workers: to be learned, or removed."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from email.message import EmailMessage
from pathlib import Path
from urllib.parse import quote

from nearstream.schemas.topics.table import DOCUMENTS
from tests.devstack.server import LocalServer
from tests.support.api import HASTY_SECONDS, Api, served
from tests.support.deployment import TEXTS, LocalDeployment, deployed

TEXT, OTHER = TEXTS[0], TEXTS[5]
NEAR = TEXT.replace(" the ", " each ", 1)
HASTY = {"api_seconds": str(HASTY_SECONDS)}


@asynccontextmanager
async def _deployed(
    kafka: str, redis_url: str, logs: Path, **changed: str
) -> AsyncIterator[tuple[LocalDeployment, Api]]:
    async with deployed(kafka, redis_url, logs, **changed) as local:
        own = {"kafka": kafka, "namespace": local.settings.namespace, "topic_prefix": local.settings.topic_prefix}
        async with served(redis_url, **own, **changed) as api:
            yield local, api


async def _learn(api: Api, body: str | bytes, **headers: str) -> dict[str, object]:
    """Learn a document. The machine may be too busy to confirm it in time, so that it is learned again."""
    async with asyncio.timeout(60):
        while True:
            status, answer = await api.send("POST", "/v1/check?learn=1", body, **headers)
            assert status == 200
            if answer["learned"]:
                return answer
            assert answer["learn_reason"] in ("deadline", "kafka_unavailable")


async def test_texts_and_mails_are_learned_once_in_their_collections_and_forgotten_when_they_are_removed(
    kafka: str, redis_url: str, tmp_path: Path
) -> None:
    name = "https://a.example/x y?z=%2F"
    message = EmailMessage()
    message["From"], message["To"], message["Subject"] = "shop@a.example", "anna@b.example", "News"
    message["Message-ID"], message["Date"] = "<anna@a.example>", "Mon, 02 Mar 2026 08:15:00 +0000"
    message.set_content(f"Dear anna,\n\n{TEXT}\n")
    given = {"Content-Type": "message/rfc822", "nearstream-collection": "inbox"}
    async with _deployed(kafka, redis_url, tmp_path, profile="mail", hash_key="k" * 32) as (local, api):
        with local.worker():
            for _ in range(2):
                answer = await _learn(api, TEXT, **{"Content-Type": "text/plain", "nearstream-id": name})
                assert (answer["learned"], answer["learn_reason"]) == (True, "")
            await _learn(api, message.as_bytes(), **given)
            await local.drained()
            (mail,) = {each.value for each in await local.read(DOCUMENTS.name) if each.key == b"<anna@a.example>"}
            assert b"shop@a.example" not in (mail or b"")
            _, answer = await api.ask(NEAR)
            assert (answer["verdict"], answer["size"]) == ("near_duplicate", 1)
            assert (answer["match"]["id"], answer["learned"], answer["learn_reason"]) == (name, False, "")
            assert (await api.ask(OTHER))[1]["verdict"] == "none"
            assert (await api.ask(message.as_bytes(), **given))[1]["match"]["id"] == "<anna@a.example>"
            others = given | {"nearstream-collection": "outbox"}
            assert (await api.ask(message.as_bytes(), **others))[1]["verdict"] == "none"

            path = f"/v1/documents/default/{quote(name, safe='')}"
            assert await api.send("DELETE", path) == (202, {"removed": True})
            await local.drained()
            assert (await api.ask(NEAR))[1]["verdict"] == "none"


async def test_a_frozen_kafka_delays_no_verdict_and_is_used_again_after_it(
    broker: LocalServer, redis_url: str, tmp_path: Path
) -> None:
    async with _deployed(broker.address, redis_url, tmp_path, **HASTY) as (local, api):
        given = {"Content-Type": "text/plain", "nearstream-id": "a"}
        await _learn(api, TEXT, **given)
        await asyncio.to_thread(broker.pause)
        try:
            for _ in range(20):
                status, answer = await api.send("POST", "/v1/check?learn=1", TEXT, **given)  # while Kafka is frozen
                assert (status, answer["learned"]) == (200, False)
                assert answer["learn_reason"] in ("deadline", "kafka_unavailable")
            status, answer = await api.send("DELETE", "/v1/documents/default/a")
            assert (status, answer["error"]) == (503, "kafka_unavailable")
        finally:
            await asyncio.to_thread(broker.resume)
        await _learn(api, OTHER, **given)
        assert {record.key for record in await local.read(DOCUMENTS.name) if record.value} == {b"a"}


async def test_a_change_that_is_not_meant_and_a_body_that_cannot_be_read_are_refused(redis_url: str) -> None:
    as_json = {"Content-Type": "application/json"}
    async with served(redis_url) as api:
        for method, path, body, headers, status, error in (
            ("POST", "/v1/check?learn=2", TEXT, {}, 400, "bad_request"),
            ("POST", "/v1/check?learn=1", TEXT, {"Origin": "https://a.example"}, 403, "cross_origin"),
            ("POST", "/v1/check?learn=1", "{", as_json, 400, "not_json"),
            ("POST", "/v1/check?learn=1", "{}", as_json, 400, "no_content"),
            ("DELETE", "/v1/documents/default/a", "", {"Origin": "null"}, 403, "cross_origin"),
            ("DELETE", "/v1/documents/No/a", "", {}, 400, "invalid_message"),
            ("DELETE", "/v1/documents/default/a%0Ab", "", {}, 400, "invalid_id"),
            ("DELETE", "/v1/documents/default/", "", {}, 404, "not_found"),
            ("GET", "/v1/documents/default/a", "", {}, 405, "method_not_allowed"),
        ):
            answer = await api.send(method, path, body, **{"Content-Type": "text/plain", **headers})
            assert (answer[0], answer[1]["error"]) == (status, error)
