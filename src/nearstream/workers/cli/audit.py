"""Measure a running deployment against exact methods."""

import argparse
import asyncio
import time
from dataclasses import asdict
from fractions import Fraction

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
from nearstream.workers.operations.terminal import Progress, print_report, report_lines
from nearstream.workers.pipeline.deployment import Deployment

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
    report = {"resemblance": options.resemblance, "recall": recall.ratio, **asdict(recall)}
    print_report(report, report_lines(report), is_json=options.json)
    return Exit.OK
