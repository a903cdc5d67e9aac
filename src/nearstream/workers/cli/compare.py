"""Compare two documents and show how they relate."""

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from msgspec import UnsetType

from nearstream.schemas.documents.evidence import Evidence, Span
from nearstream.schemas.documents.signature import Signature
from nearstream.schemas.topics.codec import InvalidMessageError
from nearstream.schemas.topics.dead_letter import Reason
from nearstream.schemas.verdicts.events import ChangeEvent, Containment
from nearstream.streams.signing.scheme import hit_probability
from nearstream.workers.cli.arguments import add_json, declare
from nearstream.workers.config.exit_codes import Exit
from nearstream.workers.config.settings import Settings
from nearstream.workers.files.content import UnreadableFileError
from nearstream.workers.operations.terminal import PATH_CHARACTERS, escaped, print_json, print_line, print_message
from nearstream.workers.pipeline.deployment import Deployment

if TYPE_CHECKING:
    from nearstream.streams.relations.describe import Related
    from nearstream.workers.pipeline.in_process import Embedded

_BAR_CELLS = 64
_MARKS = "abcdefghijklmnopqrstuvwxyz"
_OTHER_MARK = "="


def add_compare(parser: argparse.ArgumentParser) -> None:
    """Declare `nearstream compare`."""
    declare(parser, show_comparison, example="nearstream compare old.txt new.txt", no="the documents are unrelated")
    kinds = "file with one document: a text, JSON (.json) or JSON Lines (.jsonl)"
    for name in ("a", "b"):
        parser.add_argument(name, metavar=name.upper(), help=kinds)
    add_json(parser, "one JSON object")


def show_comparison(settings: Settings, options: argparse.Namespace) -> Exit:
    """Print how the documents of two files relate, with all evidence."""
    try:
        compared = compare_files(Deployment.of(settings), (options.a, options.b))
    except (InvalidMessageError, UnreadableFileError) as error:
        print_message(f"nearstream: {error}")
        return Exit.UNREADABLE
    if options.json:
        print_json(as_object(compared))
    else:
        for line in as_text(compared):
            print_line(line)
    return Exit.OK if compared.is_related else Exit.NO


@dataclass(frozen=True)
class Meeting:
    """Whether two documents would meet in an index whose buckets have room.

    Attributes:
        chance_by_bands: Probability that two texts share a band, for the estimated resemblance and for the lower and
            the upper end of its interval.
        shares_a_key: Whether these two documents have an index key in common.
    """

    chance_by_bands: tuple[float, float, float]
    shares_a_key: bool


@dataclass(frozen=True)
class Comparison:
    """Two documents, their relation and whether they meet in the index."""

    pair: "Related"
    meeting: Meeting

    @property
    def is_related(self) -> bool:
        """Whether the documents have a relation."""
        return self.pair.verdict.relation != "unrelated"


def compare_files(deployment: Deployment, paths: tuple[str, str]) -> Comparison:
    """Compare the documents of two files.

    Args:
        deployment: The deployment whose scheme and thresholds apply.
        paths: Files of any kind that `read` accepts, with one document each.

    Raises:
        UnreadableFileError: A file cannot be read.
        InvalidMessageError: A file contains no document with words, or the documents belong to different collections.
    """
    from nearstream.workers.pipeline.in_process import embedded

    job = embedded(deployment)
    one, other = (_worded(job, path, deployment) for path in paths)
    if one.collection != other.collection:
        raise InvalidMessageError(
            Reason.INVALID_MESSAGE,
            "$.collection: expected the same collection in both, documents of two collections never meet",
        )
    pair = job.matcher.compare(one, other)
    scheme = deployment.scheme
    bands = scheme.bands.bands
    resemblance = pair.estimate.resemblance
    points = (resemblance.value, resemblance.low, resemblance.high)
    value, low, high = (hit_probability(point, bands, scheme.bands.rows) for point in points)
    same_digest_or_lineage = one.digest == other.digest or pair.verdict.same_lineage
    shares_a_key = bool(same_digest_or_lineage or pair.keys.bands or pair.keys.anchors)
    return Comparison(pair, Meeting((value, low, high), shares_a_key))


def as_object(comparison: Comparison) -> dict[str, Any]:
    """Return a comparison for JSON, with the event if the documents are related."""
    from nearstream.streams.relations.describe import common_spans, describe, evidence

    pair, verdict, meeting = comparison.pair, comparison.pair.verdict, comparison.meeting
    value, low, high = (round(chance, 4) for chance in meeting.chance_by_bands)
    return {
        "relation": verdict.relation,
        "rule": verdict.rule,
        "thresholds": verdict.thresholds,
        "newer": pair.newer.id,
        "older": pair.older.id,
        "evidence": evidence(pair),
        "low_confidence": verdict.low_confidence,
        "mean_resemblance": round(pair.estimate.mean_resemblance, 4),
        "order_gap": round(pair.estimate.order_gap, 4),
        "kinship": round(pair.estimate.kinship, 1),
        "expected_distance": round(pair.estimate.expected),
        "common_spans": common_spans(pair),
        "in_order": not is_crossed(common_spans(pair)),
        "meets": {"chance_by_bands": {"value": value, "low": low, "high": high}, "shares_a_key": meeting.shares_a_key},
        "event": describe(pair) if comparison.is_related else None,
    }


def as_text(comparison: Comparison) -> Iterator[str]:
    """Yield a comparison as lines for a person.

    They hold the verdict, each number with its interval, and a picture of the common passages.
    """
    from nearstream.streams.relations.describe import common_spans, evidence

    pair, verdict = comparison.pair, comparison.pair.verdict
    thresholds = ", ".join(f"{name} {value:g}" for name, value in verdict.thresholds.items())
    yield _row("relation", verdict.relation + (", same lineage" if verdict.same_lineage else ""))
    yield _row("rule", verdict.rule + (f" ({thresholds})" if thresholds else ""))
    for reason in verdict.low_confidence:
        yield _row("weak", reason)
    for name, side in (("newer", pair.newer), ("older", pair.older)):
        yield _row(name, f"{escaped(side.id)}, {side.characters} characters, {side.words} words")
    yield from change_lines(pair)
    yield from number_lines(pair, evidence(pair))
    yield from _meeting_lines(comparison)
    yield ""
    yield from picture(common_spans(pair), pair.newer.characters, pair.older.characters)


def picture(spans: tuple[Span, ...], newer: int, older: int) -> Iterator[str]:
    """Draw both documents as bars that show their common passages.

    Both bars have one scale. Each of the 26 longest passages is drawn as a letter, in the order of the newer
    document, shorter passages as `=`, and text that is in one document only as dots.

    Args:
        spans: Common passages.
        newer: Characters of the newer document's normal form.
        older: Characters of the older document's normal form.
    """
    longest = sorted(spans, key=lambda span: span.newer[0] - span.newer[1])
    marked = sorted(longest[: len(_MARKS)], key=lambda span: span.newer)
    marks = dict(zip(marked, _MARKS, strict=False))
    cell = max(newer, older) / _BAR_CELLS
    for side, length in (("newer", newer), ("older", older)):
        passages = [(getattr(span, side), marks.get(span, _OTHER_MARK)) for span in longest]
        yield f"{side}  |{_bar(passages, length, cell)}|"
    if not spans:
        yield "no common passage"
        return
    order = "crossed: in another order" if is_crossed(spans) else "in the same order"
    yield f"{len(spans)} common passage{'s' * (len(spans) > 1)}, {order}; a cell is {cell:.0f} characters"


def is_crossed(spans: tuple[Span, ...]) -> bool:
    """Return whether the common passages have different orders in the two texts."""
    starts = [span.older[0] for span in sorted(spans, key=lambda span: span.newer)]
    return starts != sorted(starts)


def _worded(job: "Embedded", path: str, deployment: Deployment) -> Signature:
    from nearstream.workers.operations.one_document import signed_file

    signature, _ = signed_file(job, path, deployment)
    if not signature.n_bytes:
        raise InvalidMessageError(Reason.NO_CONTENT, f"{escaped(path, PATH_CHARACTERS)}: expected a text with words")
    return signature


def _row(name: str, text: str) -> str:
    return f"{name:<15}  {text}"


def change_lines(pair: "Related") -> Iterator[str]:
    """Yield where one document is inside the other, and what the newer one changed."""
    from nearstream.streams.relations.describe import describe

    event = None if pair.verdict.relation == "unrelated" else describe(pair)
    if isinstance(event, Containment):
        inner, outer = ("newer", "older") if event.inner == "newer" else ("older", "newer")
        yield _row("inside", f"the {inner} lies in the {outer} at {_span(event.place)}")
    if isinstance(event, ChangeEvent) and not isinstance(event.new_spans, UnsetType):
        yield _row("changed", f"+{event.added} -{event.removed} characters")
        more = f", {event.new_spans_omitted} more" if event.new_spans_omitted else ""
        yield _row("new in newer", (", ".join(map(_span, event.new_spans)) or "nothing") + more)


def number_lines(pair: "Related", numbers: Evidence) -> Iterator[str]:
    """Yield every estimate with its interval."""
    estimate, resemblance = pair.estimate, numbers.resemblance
    yield _row("resemblance", f"{resemblance.value:.2f} ({resemblance.low:.2f}-{resemblance.high:.2f})")
    overlap, distance = numbers.overlap, numbers.distance
    if isinstance(overlap, UnsetType) or isinstance(distance, UnsetType):
        return
    yield _row("  with symbols", f"{estimate.mean_resemblance:.2f}")
    containments = pair.newer_first(estimate.containment_shorter, estimate.containment_longer)
    for name, share in zip(("newer in older", "older in newer"), containments, strict=True):
        yield _row(name, f"{share.value:.2f} ({share.low:.2f}-{share.high:.2f})")
    yield _row("in order", f"{overlap.in_order:.2f} of the shorter, {overlap.order_free:.2f} in any order")
    symbols = f"{overlap.symbols} of {overlap.symbols_newer} and {overlap.symbols_older} symbols"
    yield _row("common", f"{symbols}, one in {overlap.rate} bytes")
    band = f"({distance.low}-{distance.high})"
    yield _row("distance", f"{distance.value} characters {band}, {numbers.distance_ratio:.2f} of the longer")
    yield _row("  if unrelated", f"{estimate.expected:.0f} characters; {estimate.kinship:.1f} deviations below")


def _meeting_lines(comparison: Comparison) -> Iterator[str]:
    keys, meeting = comparison.pair.keys, comparison.meeting
    value, low, high = meeting.chance_by_bands
    chance = f"chance to share one {value:.3f} ({low:.3f}-{high:.3f})"
    yield _row("bands", f"{keys.bands} of {keys.bands_of} shared; {chance}")
    yield _row("anchors", f"{keys.anchors} shared of {keys.anchors_newer} and {keys.anchors_older}")
    yield _row("in the index", "they meet" if meeting.shares_a_key else "they do not meet: no key in common")


def _bar(passages: list[tuple[tuple[int, int], str]], length: int, cell: float) -> str:
    """Draw one bar from passages with their marks, the longest first.

    If two passages share a cell, the longer one is drawn.
    """
    drawn = ["."] * max(1, round(length / cell))
    for (start, end), mark in passages:
        first = min(int(start / cell), len(drawn) - 1)
        for at in range(first, max(first + 1, min(round(end / cell), len(drawn)))):
            if drawn[at] == ".":
                drawn[at] = mark
    return "".join(drawn)


def _span(span: tuple[int, int]) -> str:
    return f"{span[0]}-{span[1]}"
