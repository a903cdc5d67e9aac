"""Measure a running deployment against exact methods."""

import argparse
import asyncio
import time
from collections.abc import Iterator
from dataclasses import asdict
from fractions import Fraction
from typing import TYPE_CHECKING

from nearstream.workers.cli.arguments import (
    DOCUMENTS_MAX,
    add,
    add_json,
    add_quiet,
    add_since,
    add_timeout,
    share,
    whole_number,
)
from nearstream.workers.config.exit_codes import Exit
from nearstream.workers.config.settings import Settings
from nearstream.workers.operations.terminal import Progress, escaped, print_report, row
from nearstream.workers.pipeline.deployment import Deployment

if TYPE_CHECKING:
    from nearstream.workers.operations.audit import Recall

_DAY_MS = 86_400_000


def add_audit(parser: argparse.ArgumentParser) -> None:
    """Declare the actions of `nearstream audit`."""
    actions = parser.add_subparsers(required=True, metavar="action")
    summary = "measure which share of the similar pairs of a window was found"
    example = "nearstream audit recall --since 24h --resemblance 0.8"
    recall = add(actions, "recall", summary, show_recall, example=example)
    least = "least resemblance of the pairs (default 0.8)"
    recall.add_argument("--resemblance", type=share, default=0.8, metavar="R", help=least)
    recall.add_argument(
        "--one-in",
        type=whole_number(1, DOCUMENTS_MAX),
        default=1,
        metavar="N",
        help="look for the partners of one document in N, among all documents (default 1)",
    )
    metrics = "also write the result as metrics of Prometheus, as a .prom file"
    recall.add_argument("--metrics", metavar="FILE", help=metrics)
    add_since(recall, "measure the records", None, ending=", by default 24h")
    add_json(recall, "one JSON object")
    add_quiet(recall)
    add_timeout(recall, 10.0)


def show_recall(settings: Settings, options: argparse.Namespace) -> Exit:
    """Print which share of the similar pairs of a window was found."""
    from nearstream.workers.operations.audit import audit_recall

    deployment, resemblance = Deployment.of(settings), Fraction(str(options.resemblance))
    since_ms = time.time_ns() // 1_000_000 - _DAY_MS if options.since is None else options.since
    progress = Progress("read", quiet=options.quiet)
    recall = asyncio.run(audit_recall(deployment, since_ms, resemblance, options.one_in, options.timeout, progress))
    if options.metrics:
        from nearstream.workers.monitoring.metrics import recall_metrics, write_metrics

        registry = recall_metrics(recall.ratio, recall.interval, recall.pairs, recall.documents)
        write_metrics(options.metrics, registry)
    as_object = {"resemblance": options.resemblance, "recall": recall.ratio, **asdict(recall)}
    print_report(as_object, recall_lines(recall, options.resemblance), is_json=options.json)
    return Exit.OK


def recall_lines(recall: "Recall", resemblance: float) -> Iterator[str]:
    """Yield the recall of a window, by resemblance, and the pairs that were missed."""
    yield row("documents", f"{recall.documents} compared, {recall.waiting} without a verdict yet")
    yield row("pairs", f"{recall.pairs} of resemblance {resemblance:g} or more")
    low, high = recall.interval
    share = "unknown: no such pair" if recall.ratio is None else f"{recall.ratio:.4f} ({low:.4f}-{high:.4f})"
    yield row("recall", f"{share}, {recall.found} found")
    for each in recall.ranges:
        yield row(f"  from {each.low:g}", f"{each.found / each.pairs:.4f}, {each.found} of {each.pairs}")
    for newer, older, found in recall.missed:
        yield row("missed", f"{escaped(newer)} and {escaped(older)}, resemblance {found:.4f}")
    if recall.missed:
        yield row("", "`nearstream show` with both ids says why")
