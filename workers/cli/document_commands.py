"""Inspect and remove documents of the index."""

import argparse
import asyncio
import time

from nearstream.schemas.document import document_key
from nearstream.workers.cli import index_report
from nearstream.workers.config.exit_codes import Exit
from nearstream.workers.config.settings import Settings
from nearstream.workers.operations.inspection import DocumentStatus, inspect
from nearstream.workers.operations.remove import remove_documents
from nearstream.workers.operations.terminal import escaped, print_json, print_line
from nearstream.workers.pipeline.deployment import Deployment

_STATUS_BEFORE = {
    DocumentStatus.LIVE: "live",
    DocumentStatus.EXPIRED: "expired",
    DocumentStatus.UNKNOWN: "not in the index",
}


def show_document(settings: Settings, options: argparse.Namespace) -> Exit:
    """Print what is known of one document: its status, its states, its buckets."""
    name = document_key(options.collection, options.id)
    inspected = asyncio.run(inspect(Deployment.of(settings), name, options.timeout, quiet=options.quiet))
    if options.json:
        print_json(index_report.document_object(inspected))
    else:
        for line in index_report.document_lines(inspected, time.time_ns() // 1_000_000):
            print_line(line)
    return Exit.NO if inspected.status is DocumentStatus.UNKNOWN else Exit.OK


def remove_by_id(settings: Settings, options: argparse.Namespace) -> Exit:
    """Send the removal of documents, and print what the index held of each."""
    deployment = Deployment.of(settings)
    removed = asyncio.run(remove_documents(deployment, options.ids, options.collection, options.timeout))
    for document in removed:
        if options.json:
            print_json({"document": document.document_key, "status": document.status})
        else:
            print_line(f"{escaped(document.document_key)}: {_STATUS_BEFORE[document.status]}, removal sent")
    return Exit.OK if all(document.status is DocumentStatus.LIVE for document in removed) else Exit.NO
