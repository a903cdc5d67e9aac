"""The published description of the HTTP API is valid, complete, and what the API serves."""

import json
from pathlib import Path
from typing import Any, cast

import msgspec
import pytest
from aiohttp import web
from jsonschema import Draft202012Validator
from openapi_spec_validator import OpenAPIV31SpecValidator

from nearstream.schemas.checks import check
from nearstream.workers.http.labels import add_label_routes
from nearstream.workers.http.live_routes import add_live_routes
from nearstream.workers.http.openapi import LIVE_MESSAGES, OPEN_PATHS, ROUTES, description
from nearstream.workers.http.operator import add_operator_routes
from nearstream.workers.http.pages import add_page_routes
from nearstream.workers.http.routes import add_routes
from tests.support.api import served
from tests.support.deployment import TEXTS

PUBLISHED = Path(__file__).parents[2] / "docs/openapi.json"
DESCRIBED = description()["components"]["schemas"]
_CHECKS = [each for each in vars(check).values() if getattr(each, "__module__", "") == check.__name__]
_REQUESTS = {check.LabelRequest, check.SkipRequest}
ANSWERS = {each for each in (*_CHECKS, *LIVE_MESSAGES) if each.__name__ in DESCRIBED} - _REQUESTS


def test_a_public_validator_accepts_the_description() -> None:
    OpenAPIV31SpecValidator(description()).validate()


def test_the_published_description_is_the_one_that_is_served() -> None:
    assert PUBLISHED.read_text() == json.dumps(description(), indent=1) + "\n"  # as `make contract` writes it


@pytest.mark.parametrize("message", sorted(ANSWERS, key=str))
def test_every_field_of_an_answer_is_described(message: type[msgspec.Struct]) -> None:
    schema = DESCRIBED[message.__name__]
    names = {field.name: field.default for field in msgspec.structs.fields(message)}
    assert list(schema["properties"]) == list(names)
    assert set(schema["required"]) == {name for name, default in names.items() if default is not msgspec.UNSET}
    assert all(each["description"] for each in schema["properties"].values())


async def test_every_path_is_described_and_answers_as_described(redis_url: str) -> None:
    told = description()
    async with served(redis_url) as api:
        for path, methods in told["paths"].items():
            for method in ("get", "post", "put", "delete"):
                headers = {"Content-Type": "text/plain"}
                async with api.session.request(
                    method, f"http://{api.address}{path}", data=TEXTS[0], headers=headers
                ) as response:
                    if method not in methods:
                        assert response.status == 405
                        continue
                    told_of = methods[method]["responses"]
                    found = told_of.get(str(response.status), told_of.get("default"))["content"]
                    assert response.content_type in found
                    if response.content_type == "application/json":
                        schema = found["application/json"]["schema"] | {"components": told["components"]}
                        Draft202012Validator(schema).validate(await response.json())


async def test_no_path_is_left_out(redis_url: str) -> None:
    async with served(redis_url) as api:
        status, body = await api.get("/v1/openapi.json")
    assert status == 200
    assert json.loads(body) == description()
    without_token = {
        path for path, methods in description()["paths"].items() for each in methods.values() if not each["security"]
    }
    assert without_token == set(OPEN_PATHS)


def test_every_route_of_the_table_is_served() -> None:
    app = web.Application()
    unused = cast(Any, None)
    add_routes(app, unused, unused, unused)
    add_page_routes(app, unused)
    add_label_routes(app, unused, unused, unused, unused)
    add_live_routes(app, unused, unused, unused, unused)
    add_operator_routes(app, unused, unused, "silences", cast(Any, print))
    served = {(route.method, route.resource.canonical) for route in app.router.routes() if route.resource is not None}
    assert {each for each in served if each[0] != "HEAD"} == {(each.method, each.path) for each in ROUTES.values()}
