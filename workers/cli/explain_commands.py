"""Explain why two documents are related, or why not."""

import argparse
import asyncio
import time

from nearstream.schemas.codec import InvalidMessageError
from nearstream.workers.cli import explain_report
from nearstream.workers.config.exit_codes import Exit
from nearstream.workers.config.settings import Settings
from nearstream.workers.operations.explaining import Explained, explain
from nearstream.workers.operations.inspection import DocumentStatus
from nearstream.workers.operations.lost_pair import Tier, first_loss
from nearstream.workers.operations.terminal import print_json, print_line, print_message
from nearstream.workers.pipeline.deployment import Deployment
from nearstream.workers.pipeline.file_content import UnreadableFileError


def explain_pair(settings: Settings, options: argparse.Namespace) -> Exit:
    """Print everything about two documents: their keys, numbers, rules, family and event."""
    deployment = Deployment.of(settings)
    try:
        explained = _explained(deployment, options)
    except (InvalidMessageError, UnreadableFileError) as error:
        print_message(f"nearstream: {error}")
        return Exit.UNREADABLE
    if options.json:
        print_json(explain_report.explanation_object(deployment, explained))
    else:
        for line in explain_report.explanation_lines(deployment, explained, time.time_ns() // 1_000_000):
            print_line(line)
    return Exit.NO if _is_unknown(explained) else Exit.OK


def explain_loss(settings: Settings, options: argparse.Namespace) -> Exit:
    """Print the first tier that lost a pair, or the event that it has."""
    deployment = Deployment.of(settings)
    try:
        explained = _explained(deployment, options)
    except (InvalidMessageError, UnreadableFileError) as error:
        print_message(f"nearstream: {error}")
        return Exit.UNREADABLE
    loss = first_loss(deployment, explained)
    if options.json:
        print_json(explain_report.loss_object(explained, loss))
    else:
        print_line(f"{loss.tier}: {loss.reason}")
        if loss.event_id and loss.tier is Tier.RELATED:
            print_line(explain_report.event_line(loss))
    return Exit.NO if _is_unknown(explained) else Exit.OK


def _explained(deployment: Deployment, options: argparse.Namespace) -> Explained:
    asked = explain(deployment, (options.a, options.b), options.collection, options.timeout, quiet=options.quiet)
    return asyncio.run(asked)


def _is_unknown(explained: Explained) -> bool:
    sides = (explained.later, explained.earlier)
    return any(side.inspected is not None and side.inspected.status is DocumentStatus.UNKNOWN for side in sides)
