"""Choose bands and rows, and say what they cost."""

import argparse
from collections.abc import Iterator
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

from nearstream.workers.cli.arguments import (
    DOCUMENTS_MAX,
    add_json,
    add_quiet,
    add_resemblance,
    declare,
    share,
    whole_number,
)
from nearstream.workers.config.exit_codes import Exit
from nearstream.workers.config.settings import Settings
from nearstream.workers.operations.terminal import in_bytes, print_json, print_line, print_message
from nearstream.workers.pipeline.deployment import Deployment

if TYPE_CHECKING:
    from nearstream.workers.operations.tuning import Tuned

_BAR_CELLS = 40
_STEPS = [step / 10 for step in range(1, 11)]
DEFAULT_RECALL = 0.99


def add_tune(parser: argparse.ArgumentParser) -> None:
    """Declare `nearstream tune`."""
    declare(parser, show_bands, example="nearstream tune --resemblance 0.8 --recall 0.99 --sample documents.jsonl")
    add_resemblance(parser, "resemblance of the pairs to be found")
    parser.add_argument(
        "--recall",
        type=share(includes_one=False),
        metavar="P",
        help="least probability of finding them (default 0.99)",
    )
    parser.add_argument(
        "--documents",
        type=whole_number(1, DOCUMENTS_MAX),
        default=1_000_000,
        metavar="N",
        help="documents in the index, for its memory (default 1000000)",
    )
    sampled = "file or folder with documents like yours: 2000 of them are compared to check the promise"
    parser.add_argument("--sample", metavar="PATH", help=sampled)
    add_json(parser, "one JSON object")
    add_quiet(parser)


def show_bands(settings: Settings, options: argparse.Namespace) -> Exit:
    """Print bands and rows with their curve, memory and settings."""
    from nearstream.workers.files.source import read
    from nearstream.workers.operations.tuning import sample, tune

    deployment = Deployment.of(settings)
    recall = DEFAULT_RECALL if options.recall is None else options.recall
    try:
        tuned = tune(deployment.scheme, options.resemblance, recall)
    except ValueError as error:
        print_message(f"nearstream: {error}")
        return Exit.USAGE
    if options.sample:
        items = read([options.sample], deployment.key, mail_content=settings.mail_content)
        tuned = replace(tuned, sampled=sample(deployment, tuned, items, quiet=options.quiet))
        if tuned.sampled is not None and not tuned.sampled.documents:
            print_message(f"nearstream: {options.sample} holds no document with words")
            return Exit.UNREADABLE
    if options.json:
        print_json(as_object(tuned, options.documents))
    else:
        for line in as_text(tuned, options.documents):
            print_line(line)
    return Exit.OK


def as_object(tuned: "Tuned", documents: int) -> dict[str, Any]:
    """Return bands, rows, curve and memory for JSON."""
    return {
        "resemblance": tuned.resemblance,
        "recall": tuned.recall,
        "bands": tuned.bands,
        "rows": tuned.rows,
        "slots": tuned.bands * tuned.rows,
        "slots_of": tuned.slots,
        "chance": tuned.chance(tuned.resemblance),
        "curve": {f"{step:g}": round(tuned.chance(step), 6) for step in _STEPS},
        "passage_words": tuned.passage_words or None,
        "document_bytes": tuned.document_bytes,
        "bytes": tuned.document_bytes * documents,
        "sample": tuned.sampled and asdict(tuned.sampled),
        "settings": {"NEARSTREAM_BANDS": tuned.bands, "NEARSTREAM_ROWS": tuned.rows},
    }


def as_text(tuned: "Tuned", documents: int) -> Iterator[str]:
    """Yield bands, rows, curve and memory as lines for a person."""
    chance = tuned.chance(tuned.resemblance)
    yield _row("bands x rows", f"{tuned.bands} x {tuned.rows}, {tuned.bands * tuned.rows} of {tuned.slots} slots")
    yield _row("promise", f"{chance:.4f} at resemblance {tuned.resemblance:g}, {tuned.recall:g} asked")
    for step in _STEPS:
        yield _row(f"  {step:.1f}", f"{tuned.chance(step):.4f}  {'#' * round(_BAR_CELLS * tuned.chance(step))}")
    yield from _sample_lines(tuned)
    if tuned.passage_words:
        yield _row(
            "anchors", f"a common passage of {tuned.passage_words} words always shares one, unless buckets are full"
        )
    quarter = tuned.chance(0.25)
    yield _row(
        "not promised", f"containment: a text inside one four times as long shares a band with chance {quarter:.4f}"
    )
    size = in_bytes(tuned.document_bytes * documents)
    yield _row("memory", f"about {tuned.document_bytes} bytes a document of 5 KB, {size} for {documents} documents")
    yield _row("settings", f"NEARSTREAM_BANDS={tuned.bands} NEARSTREAM_ROWS={tuned.rows}")
    yield _row("", "they make another scheme: see `nearstream index build`")


def _sample_lines(tuned: "Tuned") -> Iterator[str]:
    found = tuned.sampled
    if found is None:
        yield _row("candidates", "false ones: unknown without --sample")
        return
    low, high = found.interval
    share = f"{found.met / found.similar:.3f} ({low:.3f}-{high:.3f})" if found.similar else "unknown"
    yield _row(
        "sample", f"{found.documents} documents, {found.similar} pairs of resemblance {tuned.resemblance:g} or more"
    )
    yield _row("  met", f"{found.met} of them share a band: {share}")
    up_to = min(1.0, tuned.resemblance + 0.05)
    yield _row(
        "", f"up to {up_to:g}: {found.barely_met} of {found.barely}, {found.barely_expected:g} expected by the curve"
    )
    yield _row("candidates", f"{found.false_candidates:.3g} false ones for a document, for each million in the index")


def _row(name: str, text: str) -> str:
    return f"{name:<12}  {text}"
