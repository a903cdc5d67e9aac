"""Show the live page over a made-up day."""

import argparse
import asyncio
import os
import sys
import webbrowser
from dataclasses import replace
from pathlib import Path

from nearstream.schemas.documents.document import Document
from nearstream.schemas.topics.codec import decode_document
from nearstream.workers.config.exit_codes import Exit
from nearstream.workers.config.settings import Settings, load
from nearstream.workers.operations.terminal import print_line, print_message
from nearstream.workers.pipeline.deployment import Deployment

_ANY_PORT = "127.0.0.1:0"


def show_day(settings: Settings, folder: Path, options: argparse.Namespace) -> Exit:
    """Serve the live page over a made-up day until it is stopped.

    Without `NEARSTREAM_API` it listens on a free port, beside a server that runs.

    Raises:
        OSError: The folder has no documents.
    """
    # Imported on use: this loads aiohttp, which the other commands of this module do not need.
    from nearstream.workers.cli.stack_demo import own_deployment, serve_on_servers
    from nearstream.workers.http.demo import serve_demo

    if settings.api == load({}).api:
        settings = replace(settings, api=_ANY_PORT)
    lines = (folder / "documents.jsonl").read_bytes().splitlines()
    examples = [decode_document(line) for line in lines if line.strip()]

    def opened(address: str) -> None:
        print_line(f"live page: {address}  (Ctrl-C ends it)", flush=True)
        if not options.no_open and _has_a_screen():
            webbrowser.open(address)

    if options.stack:
        asyncio.run(serve_on_servers(own_deployment(settings), _with_text(examples), options, opened))
    else:
        print_message("matching the first half hour of a made-up day")
        asyncio.run(serve_demo(Deployment.of(settings), _with_text(examples), options.speed, opened))
    return Exit.OK


def _with_text(documents: list[Document]) -> list[Document]:
    return [document for document in documents if document.text and document.id]


def _has_a_screen() -> bool:
    """Return whether a browser would open a window, and not take over this terminal."""
    named = os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    return sys.stdout.isatty() and (bool(named) or sys.platform == "darwin")
