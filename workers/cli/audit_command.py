"""Measure a running deployment against exact methods."""

import argparse
import asyncio
import time
from collections.abc import Iterator
from dataclasses import asdict
from fractions import Fraction

from nearstream.workers.config.exit_codes import Exit
from nearstream.workers.config.settings import Settings
from nearstream.workers.monitoring.metrics import write_recall
from nearstream.workers.operations.audit import Recall, WindowTooLargeError, audit_recall
from nearstream.workers.operations.terminal import escaped, print_json, print_line, print_message
from nearstream.workers.pipeline.deployment import Deployment

_DAY_MS = 86_400_000


def show_recall(settings: Settings, options: argparse.Namespace) -> Exit:
    """Print which share of the similar pairs of a window was found."""
    since_ms = time.time_ns() // 1_000_000 - _DAY_MS if options.since is None else options.since
    resemblance = Fraction(str(options.resemblance))
    asked = audit_recall(
        Deployment.of(settings), resemblance, since_ms, options.one_in, options.timeout, quiet=options.quiet
    )
    try:
        recall = asyncio.run(asked)
    except WindowTooLargeError as error:
        print_message(f"nearstream: {error}")
        return Exit.USAGE
    if options.metrics:
        write_recall(options.metrics, recall.ratio, recall.pairs, recall.documents)
    if options.json:
        print_json({"resemblance": options.resemblance, "recall": recall.ratio, **asdict(recall)})
    else:
        for line in recall_lines(recall, options.resemblance):
            print_line(line)
    return Exit.OK


def recall_lines(recall: Recall, resemblance: float) -> Iterator[str]:
    """Yield the recall of a window, by resemblance, and the pairs that were missed."""
    yield _row("documents", f"{recall.documents} compared, {recall.waiting} without a verdict yet")
    yield _row("pairs", f"{recall.pairs} of resemblance {resemblance:g} or more")
    low, high = recall.interval
    share = "unknown: no such pair" if recall.ratio is None else f"{recall.ratio:.4f} ({low:.4f}-{high:.4f})"
    yield _row("recall", f"{share}, {recall.found} found")
    for each in recall.ranges:
        yield _row(f"  from {each.low:g}", f"{each.found / each.pairs:.4f}, {each.found} of {each.pairs}")
    for newer, older, found in recall.missed:
        yield _row("missed", f"{escaped(newer)} and {escaped(older)}, resemblance {found:.4f}")
    if recall.missed:
        yield _row("", "`nearstream why-not` says why")


def _row(name: str, text: str) -> str:
    return f"{name:<12}  {text}"
