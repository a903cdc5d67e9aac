"""How two texts relate, as a person reads it."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
from msgspec import UnsetType

from schemas.codec import InvalidMessageError
from schemas.dead_letter import Reason
from schemas.events import ChangeEvent, Containment, Evidence, Span
from schemas.record import Record
from schemas.signature import Signature
from streams.banding import hit_probability
from streams.describe import Related, common_spans, describe, evidence
from streams.receive import Removal, receive
from workers import assembly
from workers.embedded import Embedded, embedded
from workers.settings import Settings
from workers.show import escaped
from workers.sources import beginning, read

_BAR = 64
_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_MORE = "="


@dataclass(frozen=True)
class Chance:
    """Whether two documents would meet in an index whose buckets have room.

    Attributes:
        by_bands: Probability that two texts of this resemblance share a band, for the resemblance with the ends
            of its interval.
        meets: Their keys are such that these two do.
    """

    by_bands: tuple[float, float, float]
    meets: bool


@dataclass(frozen=True)
class Compared:
    """Two documents with all that their signatures say about them."""

    pair: Related
    chance: Chance

    @property
    def is_related(self) -> bool:
        """Whether there is a relation at all."""
        return self.pair.verdict.relation != "unrelated"


def compare(settings: Settings, paths: tuple[str, str]) -> Compared:
    """The documents of two files: texts, JSON documents (`.json`) or JSON Lines with one document.

    Raises:
        OSError: A file cannot be read.
        InvalidMessageError: A file holds no document with words, or both belong to different collections.
    """
    job = embedded(settings)
    one, other = (_signature(job, path) for path in paths)
    if one.collection != other.collection:
        raise InvalidMessageError(Reason.INVALID_MESSAGE, "$.collection: one collection expected, two never meet")
    pair = job.matcher.compare(one, other)
    bands = assembly.scheme(settings, assembly.hash_key(settings)).bands
    alike = pair.estimate.resemblance
    low, value, high = (hit_probability(each, bands.bands, bands.rows) for each in (alike.low, alike.value, alike.high))
    named = one.digest == other.digest or pair.verdict.same_lineage
    return Compared(pair, Chance((value, low, high), bool(named or pair.keys.bands or pair.keys.anchors)))


def as_json(compared: Compared) -> bytes:
    """One line with every number; of related documents the fields of their event are the same."""
    pair, verdict = compared.pair, compared.pair.verdict
    value, low, high = (round(each, 4) for each in compared.chance.by_bands)
    told: dict[str, Any] = {  # Any: a tree as JSON has it
        "relation": verdict.relation,
        "rule": verdict.rule,
        "thresholds": verdict.bounds,
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
        "meets": {"chance_by_bands": {"value": value, "low": low, "high": high}, "shares_a_key": compared.chance.meets},
        "event": describe(pair) if compared.is_related else None,
    }
    return msgspec.json.encode(told)


def as_text(compared: Compared) -> Iterator[str]:
    """Lines: the verdict, each number with its interval, a picture of the common passages."""
    pair, verdict = compared.pair, compared.pair.verdict
    bounds = ", ".join(f"{name} {value:g}" for name, value in verdict.bounds.items())
    yield _row("relation", verdict.relation + (", same lineage" if verdict.same_lineage else ""))
    yield _row("rule", verdict.rule + (f" ({bounds})" if bounds else ""))
    for reason in verdict.low_confidence:
        yield _row("weak", reason)
    for name, side in (("newer", pair.newer), ("older", pair.older)):
        yield _row(name, f"{escaped(side.id)}, {side.characters} characters, {side.words} words")
    yield from _changes(compared)
    yield from _numbers(pair, evidence(pair))
    yield from _meeting(compared)
    yield ""
    yield from picture(common_spans(pair), pair.newer.characters, pair.older.characters)


def picture(spans: tuple[Span, ...], newer: int, older: int) -> Iterator[str]:
    """Two bars of one scale; a letter stands for a passage, a dot for text that only one of both has.

    Letters follow the newer document; the longest 26 passages have one, shorter ones are drawn as `=`.

    Args:
        spans: Common passages.
        newer: Characters of the newer normal form.
        older: The same of the older.
    """
    longest = sorted(spans, key=lambda span: span.newer[0] - span.newer[1])
    lettered = sorted(longest[: len(_LETTERS)], key=lambda span: span.newer)
    marks = dict(zip(lettered, _LETTERS, strict=False))
    cells = max(newer, older) / _BAR
    for name, length, side in (("newer", newer, "newer"), ("older", older, "older")):
        places = [(getattr(span, side), marks.get(span, _MORE)) for span in longest]
        yield f"{name}  |{_bar(places, length, cells)}|"
    if not spans:
        yield "no common passage"
        return
    order = "crossed: in another order" if is_crossed(spans) else "in the same order"
    yield f"{len(spans)} common passage{'s' * (len(spans) > 1)}, {order}; a cell is {cells:.0f} characters"


def is_crossed(spans: tuple[Span, ...]) -> bool:
    """Whether common passages stand in another order in one text than in the other."""
    starts = [span.older[0] for span in sorted(spans, key=lambda span: span.newer)]
    return starts != sorted(starts)


def _signature(job: Embedded, path: str) -> Signature:
    try:
        return _signed(job, _record(path))
    except InvalidMessageError as error:
        raise InvalidMessageError(error.reason, f"{escaped(path)}: {error.detail}") from None


def _signed(job: Embedded, record: Record) -> Signature:
    received = receive(record, job.bounds)
    if isinstance(received, Removal):
        raise InvalidMessageError(Reason.INVALID_MESSAGE, "a document expected, not a removal")
    signature = job.signer.sign(received.document, None, received.degraded)
    if not signature.n_bytes:
        raise InvalidMessageError(Reason.NO_CONTENT, "a text with words expected")
    return signature


def _record(path: str) -> Record:
    """The record that would carry the only document of a file."""
    if path.endswith(".json"):
        file = Path(path)
        changed_at_ms = os.stat(file).st_mtime_ns // 1_000_000
        return Record("input", 0, 0, changed_at_ms, os.fsencode(path), beginning(file), [])
    items = [item for _, item in zip(range(2), read([path]), strict=False)]
    if len(items) != 1:
        raise InvalidMessageError(Reason.INVALID_MESSAGE, "one document in the file expected")
    return items[0].record


def _row(name: str, told: str) -> str:
    return f"{name:<15}  {told}"


def _changes(compared: Compared) -> Iterator[str]:
    event = describe(compared.pair) if compared.is_related else None
    if isinstance(event, Containment):
        inner, outer = ("newer", "older") if event.inner == "newer" else ("older", "newer")
        yield _row("inside", f"the {inner} lies in the {outer} at {_span(event.place)}")
    if isinstance(event, ChangeEvent) and not isinstance(event.new_spans, UnsetType):
        yield _row("changed", f"+{event.added} -{event.removed} characters")
        more = f", {event.new_spans_omitted} more" if event.new_spans_omitted else ""
        yield _row("new in newer", (", ".join(map(_span, event.new_spans)) or "nothing") + more)


def _numbers(pair: Related, said: Evidence) -> Iterator[str]:
    numbers, alike = pair.estimate, said.resemblance
    yield _row("resemblance", f"{alike.value:.2f} ({alike.low:.2f}-{alike.high:.2f})")
    if isinstance(said.overlap, UnsetType) or isinstance(said.distance, UnsetType):
        return
    yield _row("  with symbols", f"{numbers.mean_resemblance:.2f}")
    shares = pair.newer_first(numbers.containment_shorter, numbers.containment_longer)
    for name, held in zip(("newer in older", "older in newer"), shares, strict=True):
        yield _row(name, f"{held.value:.2f} ({held.low:.2f}-{held.high:.2f})")
    counts = f"{said.overlap.symbols} of {said.overlap.symbols_newer} and {said.overlap.symbols_older} symbols"
    yield _row("in order", f"{said.overlap.in_order:.2f} of the shorter, {said.overlap.order_free:.2f} in any order")
    yield _row("common", f"{counts}, one in {said.overlap.rate} bytes")
    band = f"({said.distance.low}-{said.distance.high})"
    yield _row("distance", f"{said.distance.value} characters {band}, {said.distance_ratio:.2f} of the longer")
    yield _row("  if unrelated", f"{numbers.expected:.0f} characters; {numbers.kinship:.1f} deviations below")


def _meeting(compared: Compared) -> Iterator[str]:
    keys, (value, low, high) = compared.pair.keys, compared.chance.by_bands
    yield _row(
        "bands", f"{keys.bands} of {keys.bands_of} shared; chance to share one {value:.3f} ({low:.3f}-{high:.3f})"
    )
    yield _row("anchors", f"{keys.anchors} shared of {keys.anchors_newer} and {keys.anchors_older}")
    yield _row("in the index", "they meet" if compared.chance.meets else "they do not meet: no key in common")


def _bar(places: list[tuple[tuple[int, int], str]], length: int, cells: float) -> str:
    """One bar; where passages share a cell the longer one is drawn."""
    drawn = ["."] * max(1, round(length / cells))
    for (start, end), mark in places:
        first = min(int(start / cells), len(drawn) - 1)
        for cell in range(first, max(first + 1, min(round(end / cells), len(drawn)))):
            if drawn[cell] == ".":
                drawn[cell] = mark
    return "".join(drawn)


def _span(span: tuple[int, int]) -> str:
    return f"{span[0]}-{span[1]}"
