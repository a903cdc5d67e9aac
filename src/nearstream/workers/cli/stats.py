"""Show how large the index is."""

import argparse
import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from msgspec import to_builtins

from nearstream.workers.cli.arguments import add_json, add_quiet, add_timeout, declare
from nearstream.workers.config.exit_codes import Exit
from nearstream.workers.config.settings import Settings
from nearstream.workers.operations.terminal import Progress, in_bytes, print_json, print_line, row, utc_time
from nearstream.workers.pipeline.deployment import Deployment
from nearstream.workers.redis.server.address import IndexAddress

if TYPE_CHECKING:
    from nearstream.workers.redis.reading.stats import SlotFacts
    from nearstream.workers.redis.reading.totals import Totals

_NOTABLE = 100_000  # keys. Fewer show no progress.
_DAY_SECONDS = 86_400
_MEMORY_UNKNOWN = "unknown, because the Redis user may not run MEMORY USAGE"


def add_stats(parser: argparse.ArgumentParser) -> None:
    """Declare `nearstream stats`."""
    declare(parser, show_stats, example="nearstream stats --json")
    internals = "show chunks, memory and checkpoints of each slot instead"
    parser.add_argument("--internals", action="store_true", help=internals)
    add_json(parser, "one JSON object, with --internals one for each slot")
    add_quiet(parser)
    add_timeout(parser, 10.0)


def show_stats(settings: Settings, options: argparse.Namespace) -> Exit:
    """Print what an operator asks of an index, or the internals of each slot."""
    address = replace(Deployment.of(settings).index_address(), beside=True)
    slots, whole = asyncio.run(_read(address, options))
    if options.internals:
        _print_internals(slots, address, is_json=options.json)
    elif options.json:
        print_json(index_object(slots, whole, address.scheme, settings.retention_seconds))
    else:
        name = f"{address.namespace}, scheme {address.scheme}"
        for line in index_lines(slots, whole, name, settings.retention_seconds):
            print_line(line)
    return Exit.OK


async def _read(address: IndexAddress, options: argparse.Namespace) -> "tuple[tuple[SlotFacts, ...], Totals]":
    from nearstream.workers.redis.index.index import index_to_read
    from nearstream.workers.redis.reading.scanning import sample_keys
    from nearstream.workers.redis.reading.stats import index_facts
    from nearstream.workers.redis.reading.totals import totals

    progress = Progress("read keys", quiet=options.quiet)
    async with index_to_read(address, options.timeout) as index:
        keys = await sample_keys(index, progress.step)
        if progress.done > _NOTABLE:
            progress.end()
        return await index_facts(index, keys), await totals(index, keys)


def _print_internals(slots: "tuple[SlotFacts, ...]", address: IndexAddress, *, is_json: bool) -> None:
    for number, slot in enumerate(slots):
        if is_json:
            print_json(slot_object(slot, address.scheme, number))
        else:
            of_slots = f", slot {number} of {len(slots)}" if len(slots) > 1 else ""
            for line in slot_lines(slot, f"{address.namespace}, scheme {address.scheme}{of_slots}"):
                print_line(line)


def index_lines(slots: "Sequence[SlotFacts]", whole: "Totals", name: str, retention_seconds: int) -> Iterator[str]:
    """Yield the documents, families and memory of an index, and what Redis has left.

    Args:
        slots: The facts of each slot.
        whole: The facts about all of them.
        name: Namespace and scheme.
        retention_seconds: How long a document can be found. 0: without limit.
    """
    told = index_object(slots, whole, "", retention_seconds)
    yield f"{name}: {told['state']}"
    oldest = f", the oldest observed {utc_time(told['oldest_ms'])}" if told["oldest_ms"] else ""
    kept = f", kept for {retention_seconds / _DAY_SECONDS:g} days" if retention_seconds else ", kept without limit"
    yield row("documents", f"{told['documents']} live{oldest}{kept}")
    yield row("families", f"{told['families']} with {told['copies']} copies (estimated)")
    used, each = told["memory_bytes"], told["bytes_a_document"]
    mean = f", {each} bytes a document" if each else ""
    yield row("memory", _MEMORY_UNKNOWN if used is None else f"{in_bytes(used)} (estimated){mean}")
    yield row("Redis", _of_limit(whole, each))


def index_object(slots: "Sequence[SlotFacts]", whole: "Totals", scheme: str, retention_seconds: int) -> dict[str, Any]:
    """Return the size of an index for JSON, whose values are Any."""
    documents = sum(slot.documents for slot in slots)
    known = [slot.memory_bytes for slot in slots if slot.memory_bytes is not None]
    used = sum(sum(each.values()) for each in known) if len(known) == len(slots) else None
    states = {str(slot.state) for slot in slots}
    return {
        "scheme": scheme,
        "state": ", ".join(sorted(states)),
        "documents": documents,
        "oldest_ms": min((slot.oldest_ms for slot in slots if slot.oldest_ms is not None), default=None),
        "retention_seconds": retention_seconds,
        "families": whole.families,
        "copies": whole.copies,
        "memory_bytes": used,
        "bytes_a_document": round(used / documents) if used is not None and documents else None,
        "redis_used_bytes": whole.used_bytes,
        "redis_limit_bytes": whole.limit_bytes,
    }


def slot_lines(slot: "SlotFacts", name: str) -> Iterator[str]:
    """Yield the state, documents, memory, chunks and checkpoints of a slot."""
    yield f"{name}: {slot.state}"
    yield row("documents", f"{slot.documents} live")
    yield row("memory", _memory(slot))
    for chunk in slot.chunks:
        fill = f"{chunk.chunks} of {chunk.mean:g} fields on average, {chunk.largest} at most"
        yield row("chunks" if chunk is slot.chunks[0] else "", f"{chunk.kind:<9} {fill}{_crowded(chunk.mean)}")
    checkpoints = ", ".join(f"{partition}: {offset}" for partition, offset in sorted(slot.checkpoints.items()))
    yield row("checkpoints", checkpoints or "none")


def slot_object(slot: "SlotFacts", scheme: str, number: int) -> dict[str, Any]:
    """Return everything known of a slot, for JSON."""
    facts = to_builtins(slot)
    del facts["key"]
    return {"slot": number, "scheme": scheme, **facts}


def _of_limit(whole: "Totals", bytes_a_document: int | None) -> str:
    """Say how much memory Redis has left, and for how many documents."""
    if not whole.limit_bytes:
        return f"{in_bytes(whole.used_bytes)} used, no maxmemory: set it, so that a full index pauses the workers"
    left = max(whole.limit_bytes - whole.used_bytes, 0)
    more = f", room for about {left // bytes_a_document} documents more" if bytes_a_document else ""
    share = f"{100 * whole.used_bytes / whole.limit_bytes:.0f} %"
    return f"{in_bytes(whole.used_bytes)} used of maxmemory {in_bytes(whole.limit_bytes)} ({share}){more}"


def _memory(slot: "SlotFacts") -> str:
    used = slot.memory_bytes
    if used is None:
        return _MEMORY_UNKNOWN
    total = sum(used.values())
    largest = sorted(((size, name) for name, size in used.items() if size), reverse=True)
    shares = ", ".join(f"{name} {100 * size / total:.0f} %" for size, name in largest)
    mean = f", {total / slot.documents:.0f} bytes a document" if slot.documents else ""
    return f"{in_bytes(total)} (estimated){mean}" + (f": {shares}" if shares else "")


def _crowded(mean: float) -> str:
    from nearstream.workers.redis.reading.stats import CROWDED

    return "  CROWDED: create a new index with a larger NEARSTREAM_INDEX_DOCUMENTS" if mean > CROWDED else ""
