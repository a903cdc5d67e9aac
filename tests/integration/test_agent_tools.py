"""The example for agents, asked by the official SDK: what a text is, what is new in it, and why two are related."""

import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import mcp

from tests.devstack.server import free_ports
from tests.support.api import PATIENT_SECONDS, served
from tests.support.deployment import TEXTS

EXAMPLE = Path(__file__).parents[2] / "examples/agent_tools.py"
TEXT, OTHER = TEXTS[0], TEXTS[5]


@asynccontextmanager
async def agent(address: str, token: str = "") -> AsyncIterator[mcp.Client]:
    """Yield a client of the example, which runs as an agent starts it."""
    given = {"NEARSTREAM_API": address, "NEARSTREAM_API_TOKEN": token, "SECONDS": str(PATIENT_SECONDS)}
    command = mcp.StdioServerParameters(
        command=sys.executable, args=[str(EXAMPLE)], env={**given, "PATH": os.environ["PATH"]}
    )
    async with mcp.Client(mcp.stdio_client(command)) as client:
        yield client


async def told(client: mcp.Client, tool: str, **arguments: str) -> Any:  # noqa: ANN401 - JSON
    """Return the answer of a tool, or its error as a text."""
    answer = await client.call_tool(tool, arguments)
    return answer.content[0].text if answer.is_error else answer.structured_content


async def test_an_agent_finds_what_is_known_and_what_is_new(redis_url: str) -> None:
    token = "a-token-of-the-agent"  # noqa: S105 - of the test
    async with served(redis_url, api_token=token) as api, agent(api.address, token) as client:
        assert {tool.name for tool in (await client.list_tools()).tools} == {"check", "novel", "family", "explain"}
        await api.admit("a", TEXT)
        await api.admit("b", TEXT)
        found = await told(client, "check", text=TEXT)
        assert (found["verdict"], found["relation"], found["match"]["id"]) == ("near_duplicate", "exact_duplicate", "a")
        assert (await told(client, "family", family=found["family"], member="a"))["family"]["size"] == 2
        assert (await told(client, "explain", newer="b", older="a"))["relation"] == "exact_duplicate"

        new = await told(client, "novel", text=f"{TEXT} {OTHER}")
        (passage,) = new["passages"]
        assert abs(passage["start"] - len(TEXT)) < 60
        assert OTHER[100:-100] in passage["text"]
        assert [each["text"] for each in (await told(client, "novel", text=OTHER))["passages"]] == [OTHER]
        assert "status 404: " in await told(client, "explain", newer="a", older="unknown")
        assert "validation error" in await told(client, "family", family="../../metrics", member="a")
    async with agent(f"127.0.0.1:{free_ports(1)[0]}") as client:
        assert "no answer from 127.0.0.1:" in await told(client, "check", text=TEXT)
