"""Replay dead letters, and skip a record that crashes the workers."""

import argparse
import asyncio

from nearstream.workers.config.exit_codes import Exit
from nearstream.workers.config.settings import Settings
from nearstream.workers.operations.replay import ReplayOutcome, Selection, plan_replay, replay_dead_letters
from nearstream.workers.operations.replay_log import TooManySpansError
from nearstream.workers.operations.skip import NotSkippedError, Target, skip_record
from nearstream.workers.operations.terminal import Progress, print_message
from nearstream.workers.pipeline.deployment import Deployment


def replay(settings: Settings, options: argparse.Namespace) -> Exit:
    """Send refused records to their topics again, or count what would be sent."""
    run = plan_replay if options.dry_run else replay_dead_letters
    deployment = Deployment.of(settings)
    progress = Progress("dead letters", 0, options.quiet)
    try:
        outcome = asyncio.run(run(deployment, Selection(options.reason, options.since), options.timeout, progress))
    except TooManySpansError as error:
        print_message(f"nearstream: {error}: replay without --reason and --since")
        return Exit.NO
    print_message(_summary("would be sent" if options.dry_run else "sent", outcome))
    return Exit.OK


def skip(settings: Settings, options: argparse.Namespace) -> Exit:
    """Skip one record that crashes the workers."""
    target = Target(options.topic, options.partition, options.offset)
    try:
        asyncio.run(skip_record(Deployment.of(settings), target, options.timeout))
    except NotSkippedError as error:
        print_message(f"nearstream: {error}")
        return Exit.NO
    print_message(f"skipped {options.offset}")
    return Exit.OK


def _summary(verb: str, outcome: ReplayOutcome) -> str:
    causes = ", ".join(f"{number} {cause}" for cause, number in outcome.skipped.most_common())
    return f"{verb} {outcome.sent}, skipped {outcome.skipped.total()}{f': {causes}' if causes else ''}"
