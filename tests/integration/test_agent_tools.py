"""An agent asks by the official SDK: what a text is, what is new in it, and why two documents are related."""

import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import mcp

from nearstream.workers.config.settings import load
from nearstream.workers.http.client.agent_tools import agent_tools
from nearstream.workers.http.client.api_client import api_client
from nearstream.workers.redis.server.client import ask
from tests.devstack.server import free_ports
from tests.support.api import PATIENT_SECONDS, served
from tests.support.deployment import TEXTS

TEXT, OTHER = TEXTS[0], TEXTS[5]


@asynccontextmanager
async def agent(address: str, **settings: str) -> AsyncIterator[mcp.Client]:
    """Yield a client of `nearstream mcp`, which runs as an agent starts it."""
    given = {"NEARSTREAM_API": address, **settings, "PATH": os.environ["PATH"]}
    command = mcp.StdioServerParameters(
        command=str(Path(sys.executable).with_name("nearstream")), args=["mcp"], env=given
    )
    async with mcp.Client(mcp.stdio_client(command)) as client:
        yield client


async def told(client: mcp.Client, tool: str, **arguments: str) -> Any:  # noqa: ANN401 - JSON
    """Return the answer of a tool, or its error as a text."""
    answer = await client.call_tool(tool, arguments)
    return answer.content[0].text if answer.is_error else answer.structured_content


async def test_an_agent_finds_what_is_known_and_what_is_new(redis_url: str) -> None:
    token = "a-token-of-the-agent"  # noqa: S105 - of the test
    async with (
        served(redis_url, api_token=token) as api,
        agent(api.address, NEARSTREAM_API_TOKEN=token) as client,
    ):
        assert {tool.name for tool in (await client.list_tools()).tools} == {"check", "novel", "family", "explain"}
        await api.admit("a", TEXT)
        await api.admit("b", TEXT)
        found = await told(client, "check", text=TEXT)
        assert (found["verdict"], found["relation"], found["match"]["id"]) == ("near_duplicate", "exact_duplicate", "a")
        assert (await told(client, "family", family=found["family"], member="a"))["family"]["size"] == 2
        assert (await told(client, "explain", newer="b", older="a"))["relation"] == "exact_duplicate"
        assert (await told(client, "check", text=TEXT, collection="other"))["relation"] is None

        new = await told(client, "novel", text=f"{TEXT} {OTHER}")
        assert not new["redundant"]
        assert [source["id"] for source in new["sources"]] in (["a"], ["b"])
        (passage,) = new["passages"]
        assert abs(passage["start"] - len(TEXT)) < 60
        assert OTHER[100:-100] in passage["text"]
        assert await told(client, "novel", text=TEXT) == {
            "passages": [],
            "redundant": True,
            "sources": found["sources"],
        }
        assert [each["text"] for each in (await told(client, "novel", text=OTHER))["passages"]] == [OTHER]


@asynccontextmanager
async def asking(address: str, **settings: str) -> AsyncIterator[mcp.Client]:
    """Yield a client of the tools in this process."""
    given = load({"NEARSTREAM_API": address, **settings})
    async with api_client(given, "", "", seconds=PATIENT_SECONDS) as client, mcp.Client(agent_tools(client)) as asker:
        yield asker


async def test_an_agent_is_told_why_it_gets_no_answer(redis_url: str) -> None:
    (closed,) = free_ports(1)
    async with asking(f"127.0.0.1:{closed}") as client:
        assert f"no answer from http://127.0.0.1:{closed}: " in await told(client, "check", text=TEXT)
    of_mail, wrong = "a-token-of-mail-only", "another-token-of-it"
    async with served(redis_url, api_token=f"{of_mail} mail") as api:
        async with asking(api.address, NEARSTREAM_API_TOKEN=wrong) as client:
            assert "status 401: " in await told(client, "check", text=TEXT)
        async with asking(api.address, NEARSTREAM_API_TOKEN=of_mail) as client:
            assert "status 403: " in await told(client, "check", text=TEXT)
            mail = {"collection": "mail"}
            assert "status 404: " in await told(client, "explain", newer="a", older="b", **mail)
            assert "status 404: " in await told(client, "family", family="f" * 32, member="a", **mail)
            for bad in ({"text": ""}, {"text": "x" * 1_048_577}, {"text": TEXT, "collection": "c" * 257}, {}):
                assert "validation error" in await told(client, "check", **bad)
            assert "validation error" in await told(client, "family", family="../../metrics", member="a", **mail)


async def test_an_agent_is_told_that_the_index_does_not_answer(redis_url: str) -> None:
    async with served(redis_url) as api, asking(api.address) as client:
        await ask(api.index.client, "DEL", api.index.address.key)
        assert "the index gave no answer: " in await told(client, "check", text=TEXT)
        assert "the index gave no answer: " in await told(client, "novel", text=TEXT)
