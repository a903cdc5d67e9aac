"""Scan the example documents, or show the live page over a made-up day."""

import argparse
import asyncio
from dataclasses import replace
from importlib.resources import files
from pathlib import Path

from nearstream.schemas.topics.codec import decode_document
from nearstream.workers.cli.arguments import add_quiet, declare
from nearstream.workers.cli.scan import add_choice, scan_files
from nearstream.workers.config.exit_codes import Exit
from nearstream.workers.config.settings import Settings, load
from nearstream.workers.operations.terminal import print_line, print_message
from nearstream.workers.pipeline.deployment import Deployment

EXAMPLES = Path(str(files("nearstream"))) / "examples"


def add_demo(parser: argparse.ArgumentParser) -> None:
    """Declare `nearstream demo`."""
    declare(parser, run_demo, example="nearstream demo --events")
    documents = [str(EXAMPLES / "documents.jsonl")]
    parser.set_defaults(paths=documents, reference=None, index=None, text_column="text", id_column="id", members=False)
    add_choice(parser)
    add_quiet(parser)
    parser.add_argument(
        "--live", action="store_true", help="show the live page over a made-up day instead, until Ctrl-C"
    )


def run_demo(settings: Settings, options: argparse.Namespace) -> Exit:
    """Scan the example documents, or serve the live page over a made-up day, by default on a free port."""
    if not options.live:
        return scan_files(settings, options)
    from nearstream.workers.http.demo import serve_demo  # it loads aiohttp

    if settings.api == load({}).api:
        settings = replace(settings, api="127.0.0.1:0")
    examples = [decode_document(line) for line in (EXAMPLES / "documents.jsonl").read_bytes().splitlines()]

    def opened(address: str) -> None:
        print_line(f"live page: {address}  (Ctrl-C ends it)", flush=True)

    print_message("matching the first half hour of a made-up day")
    asyncio.run(serve_demo(Deployment.of(settings), examples, opened))
    return Exit.OK
