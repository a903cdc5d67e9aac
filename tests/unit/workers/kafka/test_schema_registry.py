"""Schemas are registered, and refusals are told."""

import json

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from nearstream.workers.config.settings import SettingsError
from nearstream.workers.kafka.schema_registry import register

SCHEMA = {"$id": "urn:nearstream:v1:verdict"}


async def registered(answer: web.Response, told: list[tuple[str, dict[str, str]]]) -> list[tuple[str, int]]:
    """Register a schema in a registry that answers like this."""

    async def post(request: web.Request) -> web.Response:
        told.append((request.path, json.loads(await request.text())))
        return answer

    app = web.Application()
    app.router.add_post("/v7/subjects/{subject}/versions", post)
    async with TestServer(app) as server:
        return [each async for each in register(str(server.make_url("/v7/")), {"t-verdict": SCHEMA})]


async def test_a_schema_is_sent_as_text_under_its_subject() -> None:
    told: list[tuple[str, dict[str, str]]] = []
    assert await registered(web.json_response({"id": 7, "more": 1}), told) == [("t-verdict", 7)]
    assert told == [
        ("/v7/subjects/t-verdict/versions", {"schemaType": "JSON", "schema": '{"$id": "urn:nearstream:v1:verdict"}'})
    ]


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (web.json_response({"error_code": 42201}, status=422), "refuses t-verdict: status 422, .*42201"),
        (web.Response(text="a page of something else"), "refuses t-verdict: status 200, a page"),
    ],
    ids=["refusal", "no registry"],
)
async def test_a_refusal_is_told(answer: web.Response, words: str) -> None:
    with pytest.raises(SettingsError, match=words):
        await registered(answer, [])


async def test_a_registry_that_is_away_is_told() -> None:
    with pytest.raises(SettingsError, match="the registry does not answer: ClientConnectorError"):
        [each async for each in register("http://127.0.0.1:1", {"t-verdict": SCHEMA})]
