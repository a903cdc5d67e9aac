"""Give an agent four tools that ask the HTTP API, over the Model Context Protocol on stdin and stdout.

Run with `pip install 'mcp>=2.3' aiohttp` and an API (`nearstream serve`), as the command that an agent starts:

    NEARSTREAM_API=127.0.0.1:8080 python examples/agent_tools.py

The tools change nothing: no document is added, labelled or removed. They have the rights of `NEARSTREAM_API_TOKEN`.
"""

import asyncio
import io
import os
import re
import sys
from collections.abc import Mapping
from typing import Annotated, Any

import aiohttp
from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from pydantic import Field

API = os.environ.get("NEARSTREAM_API", "127.0.0.1:8080")
TOKEN = os.environ.get("NEARSTREAM_API_TOKEN", "")
SECONDS = float(os.environ.get("SECONDS", "5"))

Text = Annotated[str, Field(min_length=1, max_length=1_048_576, description="The whole text of the document.")]
Collection = Annotated[str, Field(max_length=256, description="The tenant. Documents of one are compared.")]
DocumentId = Annotated[str, Field(min_length=1, max_length=4096, description="The id of a document.")]
# Half of a surrogate pair, as `text[:n]` of JavaScript leaves it, but no whole pair and no escaped backslash.
HALF = re.compile(rb"(\\\\|\\ud[89ab]\w\w\\ud[c-f]\w\w)|\\ud[89a-f]\w\w", re.IGNORECASE)
FamilyId = Annotated[str, Field(pattern="^[0-9a-f]{32}$", description="The id that `check` tells.")]

server = MCPServer(
    "nearstream",
    instructions="nearstream knows the documents of a stream by their signatures, not their texts. Ask `check` what a "
    "text is to them, and `novel` for the passages that none of them has. `family` and `explain` tell more about the "
    "ids that these two return.",
    log_level="WARNING",
)


async def ask(method: str, path: str, query: Mapping[str, str], document: object = None) -> dict[str, Any]:
    """Return the answer of the API, or tell the agent why there is none."""
    headers = {"Authorization": f"Bearer {TOKEN}"} if TOKEN else {}
    try:
        async with (
            aiohttp.ClientSession(headers=headers, timeout=aiohttp.ClientTimeout(SECONDS)) as session,
            session.request(method, f"http://{API}{path}", params=query, json=document) as response,
        ):
            answer = await response.json()
    except (aiohttp.ClientError, TimeoutError, ValueError) as error:
        raise ToolError(f"no answer from {API}: {error!r}") from None
    if response.status != 200:
        raise ToolError(f"no answer from {API}: status {response.status}: {answer.get('detail')}")
    return dict(answer)


@server.tool()
async def check(text: Text, collection: Collection = "default") -> dict[str, Any]:
    """Say what a text is to the known documents: a copy, a new version, a part of one, or unrelated.

    `verdict` and `relation` name it, `match` is the document that is most like it, `family` the copies that it would
    join. `novel` counts the characters that no related document has.
    """
    answer = await ask("POST", "/v1/check", {}, {"text": text, "collection": collection})
    if answer["degraded"]:
        raise ToolError(f"the index gave no answer: {answer['reason']}. Nothing is known of this text.")
    return answer


@server.tool()
async def novel(text: Text, collection: Collection = "default") -> dict[str, Any]:
    """Return the passages of a text that no known document has, at most 32, and which documents have the rest.

    `redundant` says that one known document has all of it.
    """
    answer = await check(text, collection)
    spans = answer["novel_spans"] if answer["match"] else [(0, len(text))]
    return {
        "passages": [{"start": start, "end": end, "text": text[start:end]} for start, end in sorted(spans)],
        "redundant": answer["redundant"],
        "sources": answer["sources"],
    }


@server.tool()
async def family(family: FamilyId, member: DocumentId, collection: Collection = "default") -> dict[str, Any]:
    """Return a family of copies: its size and growth, where its members come from, and the newest of them.

    `check` tells its id, and as `match` the id of a member.
    """
    return await ask("GET", f"/v1/families/{family}", {"id": member, "collection": collection})


@server.tool()
async def explain(newer: DocumentId, older: DocumentId, collection: Collection = "default") -> dict[str, Any]:
    """Explain how two known documents relate: what they share and where, and which rule decided."""
    return await ask("GET", "/v1/pair", {"newer": newer, "older": older, "collection": collection})


class WholeCharacters(io.BufferedIOBase):
    """Reads standard input, with U+FFFD for half a character. The SDK would leave a request with one unanswered."""

    def readable(self) -> bool:
        """Return that it can be read."""
        return True

    def read1(self, _size: int = -1, /) -> bytes:
        """Return the next request."""
        return HALF.sub(lambda found: found[1] or rb"\ufffd", STDIN.readline())


STDIN = sys.stdin.buffer

if __name__ == "__main__":
    sys.stdin = io.TextIOWrapper(WholeCharacters(), "utf-8")
    asyncio.run(server.run_stdio_async())
