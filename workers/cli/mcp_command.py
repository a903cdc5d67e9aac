"""Give agents tools that ask the HTTP API."""

import argparse
import asyncio

from nearstream.workers.config.exit_codes import Exit
from nearstream.workers.config.settings import Settings
from nearstream.workers.operations.terminal import print_message


def answer_agent(settings: Settings, options: argparse.Namespace) -> Exit:
    """Answer an agent on stdin and stdout until it closes them."""
    # Imported on use, because these load aiohttp and the SDK, which is an extra.
    from nearstream.workers.api_client import api_client

    try:
        from nearstream.workers.agent_tools import agent_tools
    except ModuleNotFoundError as error:
        print_message(f"nearstream mcp: needs the extra `mcp`, in which {error.name} is: pip install 'nearstream[mcp]'")
        return Exit.MISCONFIGURED

    async def run() -> None:
        async with api_client(settings, "", "the agent is told so", seconds=options.timeout) as client:
            await agent_tools(client).run_stdio_async()

    asyncio.run(run())
    return Exit.OK
