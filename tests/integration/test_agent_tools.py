"""The example for agents, asked by the official SDK: what a text is, what is new in it, and why two are related."""

import asyncio
import json
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


async def test_a_text_with_half_a_character_gets_an_answer_although_the_sdk_would_leave_it_without(
    redis_url: str,
) -> None:
    begin = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "raw", "version": "1"}}
    requests = [("initialize", begin), ("notifications/initialized", None)]
    texts = ("\ud83d", "\\\ude00", "\\ud83d", "\U0001f600 \ud83d\U0001f600")
    calls = [{"name": "novel", "arguments": {"text": f"{OTHER} {text}"}} for text in texts]
    async with served(redis_url) as api, asyncio.timeout(PATIENT_SECONDS):
        environment = {"NEARSTREAM_API": api.address, "PATH": os.environ["PATH"], "SECONDS": str(PATIENT_SECONDS)}
        pipe = asyncio.subprocess.PIPE
        agent = await asyncio.create_subprocess_exec(
            sys.executable, str(EXAMPLE), env=environment, stdin=pipe, stdout=pipe
        )
        assert agent.stdin is not None
        assert agent.stdout is not None
        for number, (method, given) in enumerate([*requests, *(("tools/call", call) for call in calls)]):
            named = {} if method.startswith("notifications") else {"id": number, "params": given}
            agent.stdin.write(json.dumps({"jsonrpc": "2.0", "method": method, **named}).encode() + b"\n")
            answer = json.loads(await agent.stdout.readline()) if named else {}
            if method == "tools/call":
                ((passage,), text) = answer["result"]["structuredContent"]["passages"], given["arguments"]["text"]
                assert passage["text"] == text.encode("utf-16", "replace").decode("utf-16").replace("?", "\ufffd")
        agent.stdin.close()
        assert await agent.wait() == 0
