"""An index, its schemes and its documents as a person or a program reads them."""

from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from itertools import groupby
from typing import Any

from schemas.signature import Signature
from workers.inspection import Inspected
from workers.redis_inspect import BucketFacts, DocumentFacts, StateFacts
from workers.redis_stats import CROWDED, PartFacts
from workers.show import escaped, in_bytes

_HOTTEST_SHOWN = 10


def document_lines(inspected: Inspected, now_ms: int) -> Iterator[str]:
    """Lines: standing, the current state, all states, the buckets that others are in."""
    facts = inspected.facts
    yield f"{escaped(inspected.document_key)}: {inspected.standing}{_end(facts, now_ms)}"
    if inspected.why:
        yield _row("", inspected.why)
    yield _row("scheme", inspected.scheme)
    if facts is None:
        return
    yield from _signature_lines(facts.states[0].signature)
    yield from _state_lines(facts.states)
    if facts.buckets:
        yield from _bucket_lines(facts.buckets)


def document_object(inspected: Inspected) -> dict[str, Any]:
    """The same and all else that is known, for JSON."""
    facts = inspected.facts
    return {
        "document": inspected.document_key,
        "standing": inspected.standing,
        "why": inspected.why,
        "scheme": inspected.scheme,
        "states": [_state_object(state) for state in facts.states] if facts else [],
        "buckets": [
            {
                "kind": each.kind,
                "name": each.name,
                "key": each.key,
                "entries": each.entries,
                "cap": each.cap,
                "overflows": each.overflows,
                "hot": each.is_hot,
            }
            for each in (facts.buckets if facts else ())
        ],
    }


def part_lines(part: PartFacts, name: str) -> Iterator[str]:
    """Lines: state, documents, memory, chunks, overflows, checkpoints of one part of this name."""
    yield f"{name}: {part.state}"
    floor = f", those below {part.floor} have expired" if part.floor > 1 else ""
    yield _row("documents", f"{part.documents} live (estimated); {part.numbers} numbers given{floor}")
    if part.kept:
        yield _row("", f"{part.kept} kept beyond their retention by what was found like them")
    if part.rebuilt:
        yield _row("", f"numbers up to {part.rebuilt} come from a rebuild")
    yield _row("memory", _memory(part))
    for chunk in part.chunks:
        fill = f"{chunk.chunks} of {chunk.mean:g} fields on average, {chunk.largest} at most"
        yield _row("chunks" if chunk is part.chunks[0] else "", f"{chunk.kind:<9} {fill}{_crowded(chunk.mean)}")
    yield _row("overflows", f"{part.overflows}{', the hottest buckets:' if part.hottest else ''}")
    for bucket in part.hottest[:_HOTTEST_SHOWN]:
        yield _row("", f"{bucket.kind:<9} {bucket.name}, {bucket.overflows} times")
    told = ", ".join(f"{partition}: {offset}" for partition, offset in sorted(part.checkpoints.items()))
    yield _row("checkpoints", told or "none")


def part_object(part: PartFacts, scheme: str, at: int) -> dict[str, Any]:
    """The same for JSON."""
    return {
        "part": at,
        "scheme": scheme,
        "state": part.state,
        "epoch": part.epoch,
        "documents": part.documents,
        "numbers": part.numbers,
        "floor": part.floor,
        "rebuilt": part.rebuilt,
        "kept": part.kept,
        "memory_bytes": part.memory_bytes,
        "chunks": [
            {"kind": each.kind, "chunks": each.chunks, "mean": each.mean, "largest": each.largest}
            for each in part.chunks
        ],
        "overflows": part.overflows,
        "hottest": [{"kind": each.kind, "name": each.name, "overflows": each.overflows} for each in part.hottest],
        "checkpoints": part.checkpoints,
    }


def when(ms: int) -> str:
    """A time to the second, in UTC."""
    return f"{datetime.fromtimestamp(ms // 1000, UTC):%Y-%m-%d %H:%M:%S} UTC"


def _row(name: str, told: str) -> str:
    return f"{name:<12}  {told}".rstrip()


def _end(facts: DocumentFacts | None, now_ms: int) -> str:
    if facts is None or facts.states[0].expired:
        return ""
    end_ms = facts.states[0].expires_at_ms
    return ", does not expire" if end_ms is None else f", expires in {_span(end_ms - now_ms)} ({when(end_ms)})"


def _span(ms: int) -> str:
    minutes, seconds = divmod(max(ms, 0) // 1000, 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    if days:
        return f"{days} d {hours} h"
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {seconds} s"


def _signature_lines(signature: Signature) -> Iterator[str]:
    yield _row("observed", when(signature.observed_at_ms))
    yield _row("size", f"{signature.characters} characters, {signature.words} words, {signature.n_bytes} bytes")
    if signature.lineage is not None:
        yield _row("lineage", escaped(signature.lineage))
    if signature.url is not None and signature.url != signature.lineage:
        yield _row("url", escaped(signature.url))
    if signature.origin is not None:
        origin = signature.origin
        yield _row("origin", f"{escaped(origin.topic)} {origin.partition} offset {origin.offset}")
    if signature.degraded:
        yield _row("degraded", ", ".join(map(escaped, signature.degraded)))


def _state_lines(states: Sequence[StateFacts]) -> Iterator[str]:
    yield _row("states", f"{'number':>8}  {'version':<16}  {'':<8}  {'signature':<16}  bytes  events  observed")
    for state in states:
        place = f"{state.position[0]} offset {state.position[1]}" if state.position else "seen again"
        yield _row(
            "",
            f"{state.number:>8}  {state.signature.version}  {_standing(state):<8}  {place:<16}"
            f"  {state.record_bytes:>5}  {state.reports:>6}  {when(state.signature.observed_at_ms)}",
        )


def _standing(state: StateFacts) -> str:
    if state.expired:
        return "expired"
    return "replaced" if state.superseded_by else "live"


def _bucket_lines(buckets: Sequence[BucketFacts]) -> Iterator[str]:
    """How many buckets of each kind hold how many states, then the hot ones by name."""
    hot = sorted((each for each in buckets if each.is_hot), key=lambda each: -each.overflows)
    for kind, group in groupby(buckets, key=lambda each: each.kind):
        filled = list(group)
        fills = sorted(Counter(each.entries for each in filled).items())
        told = ", ".join(f"{count} with {entries or 'none'}" for entries, count in fills)
        yield _row("buckets" if filled[0] is buckets[0] else "", f"{kind:<8} {told}, of at most {filled[0].cap}")
    for each in hot:
        yield _row(
            "  HOT", f"{each.kind:<8} {each.name}: {each.entries} of {each.cap}, overflowed {each.overflows} times"
        )


def _state_object(state: StateFacts) -> dict[str, Any]:
    signature = state.signature
    return {
        "number": state.number,
        "standing": _standing(state),
        "version": signature.version,
        "observed_at_ms": signature.observed_at_ms,
        "expires_at_ms": state.expires_at_ms,
        "spared": state.spared,
        "superseded_by": state.superseded_by,
        "signature": state.position and {"partition": state.position[0], "offset": state.position[1]},
        "origin": signature.origin,
        "lineage": signature.lineage,
        "url": signature.url,
        "source": signature.source,
        "labels": signature.labels,
        "characters": signature.characters,
        "words": signature.words,
        "bytes": signature.n_bytes,
        "degraded": signature.degraded,
        "events": state.reports,
        "record_bytes": state.record_bytes,
    }


def _memory(part: PartFacts) -> str:
    used = part.memory_bytes
    if used is None:
        return "not known: our user may not run MEMORY USAGE"
    total = sum(used.values())
    largest = sorted(((size, name) for name, size in used.items() if size), reverse=True)
    shares = ", ".join(f"{name} {100 * size / total:.0f} %" for size, name in largest)
    each = f", {total / part.documents:.0f} bytes a document" if part.documents else ""
    return f"{in_bytes(total)} (estimated){each}" + (f": {shares}" if shares else "")


def _crowded(mean: float) -> str:
    return "  CROWDED: a larger NEARSTREAM_INDEX_DOCUMENTS is due" if mean > CROWDED else ""
