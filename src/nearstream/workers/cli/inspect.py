"""Show one document of the index."""

import argparse
import asyncio
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any

from msgspec import to_builtins

from nearstream.schemas.documents.document import document_key
from nearstream.schemas.documents.signature import Signature
from nearstream.workers.cli.arguments import add_collection, add_json, add_quiet, add_timeout, declare, document_id
from nearstream.workers.cli.families import family_object
from nearstream.workers.config.exit_codes import Exit
from nearstream.workers.config.settings import Settings
from nearstream.workers.operations.terminal import escaped, print_json, print_line, row, utc_time
from nearstream.workers.pipeline.deployment import Deployment
from nearstream.workers.redis.reading.document_facts import BucketFacts, MemberFacts, StateFacts

if TYPE_CHECKING:
    from nearstream.workers.operations.inspection import Inspected


def add_inspect(parser: argparse.ArgumentParser) -> None:
    """Declare `nearstream inspect`."""
    example = "nearstream inspect https://a.example/1 --collection news"
    declare(parser, show_document, example=example, no="the id is unknown")
    parser.add_argument("id", type=document_id, metavar="ID", help="id of the document")
    add_json(parser, "one JSON object")
    add_quiet(parser)
    add_collection(parser, "documents")
    add_timeout(parser, 10.0)


def show_document(settings: Settings, options: argparse.Namespace) -> Exit:
    """Print what is known of one document: its status, its states, its buckets."""
    from nearstream.workers.operations.inspection import DocumentStatus, inspect

    name = document_key(options.collection, options.id)
    inspected = asyncio.run(inspect(Deployment.of(settings), name, options.timeout, quiet=options.quiet))
    if options.json:
        print_json(document_object(inspected))
    else:
        for line in document_lines(inspected, time.time_ns() // 1_000_000):
            print_line(line)
    return Exit.NO if inspected.status is DocumentStatus.UNKNOWN else Exit.OK


def document_lines(inspected: "Inspected", now_ms: int) -> Iterator[str]:
    """Yield the status of a document, its current state, all its states and its buckets.

    Args:
        inspected: What is known of the document.
        now_ms: Milliseconds since 1970, from which the time left is counted.
    """
    states = inspected.states
    yield f"{escaped(inspected.document_key)}: {inspected.status}{_expiry(states, now_ms)}"
    if inspected.reason:
        yield row("", inspected.reason)
    yield row("scheme", inspected.scheme)
    if not states:
        return
    yield from _signature_lines(states[0].signature)
    yield from _family_lines(states[0])
    yield from _state_lines(states)
    yield from _bucket_lines(inspected.buckets)


def document_object(inspected: "Inspected") -> dict[str, Any]:
    """Return everything known of a document, for JSON."""
    return {
        "document": inspected.document_key,
        "status": inspected.status,
        "reason": inspected.reason,
        "scheme": inspected.scheme,
        "states": [_state_object(state) for state in inspected.states],
        "buckets": [to_builtins(bucket) | {"hot": bucket.is_hot} for bucket in inspected.buckets],
    }


def _expiry(states: Sequence[StateFacts], now_ms: int) -> str:
    if not states or states[0].expired:
        return ""
    end_ms = states[0].expires_at_ms
    return ", does not expire" if end_ms is None else f", expires in {_span(end_ms - now_ms)} ({utc_time(end_ms)})"


def _span(ms: int) -> str:
    minutes, seconds = divmod(max(ms, 0) // 1000, 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    if days:
        return f"{days} d {hours} h"
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {seconds} s"


def _signature_lines(signature: Signature) -> Iterator[str]:
    yield row("observed", utc_time(signature.observed_at_ms))
    yield row("size", f"{signature.characters} characters, {signature.words} words, {signature.n_bytes} bytes")
    if signature.lineage is not None:
        yield row("lineage", escaped(signature.lineage))
    if signature.url is not None and signature.url != signature.lineage:
        yield row("url", escaped(signature.url))
    if signature.origin is not None:
        origin = signature.origin
        yield row("origin", f"{escaped(origin.topic)} {origin.partition} offset {origin.offset}")
    if signature.degraded:
        yield row("degraded", ", ".join(map(escaped, signature.degraded)))


def _family_lines(state: StateFacts) -> Iterator[str]:
    """Yield the place of a state in its family, and how large that is."""
    member = state.family
    facts = member.facts if member else None
    if member is None:
        yield row("family", "its own" if state.decided else "not decided yet")
        return
    if facts is None:
        own = "its own, without copies"
        yield row("family", own if member.ordinal else f"founded by number {member.number}, not joined yet")
        return
    place = f"no. {member.ordinal}" if member.ordinal else "not joined yet"
    yield row("family", f"{facts.family_id}, {place}, {facts.size} live")
    founder = "this state" if facts.number == state.number else escaped(facts.founder) or f"number {facts.number}"
    others = f"number {facts.representative}" if facts.representative else "nobody"
    representative = "this state" if facts.representative == state.number else others
    yield row("", f"founded by {founder}, represented by {representative}")
    hour, day, week = facts.joined
    yield row("", f"joined: {hour} in the last hour, {day} in the last day, {week} in the last week")


def _state_lines(states: Sequence[StateFacts]) -> Iterator[str]:
    yield row("states", f"{'number':>8}  {'version':<16}  {'':<8}  {'signature':<16}  bytes  events  observed")
    for state in states:
        position = f"{state.position.partition} offset {state.position.offset}"
        yield row(
            "",
            f"{state.number:>8}  {state.signature.version}  {_status(state):<8}  {position:<16}"
            f"  {state.record_bytes:>5}  {state.reports:>6}  {utc_time(state.signature.observed_at_ms)}",
        )


def _status(state: StateFacts) -> str:
    if state.expired:
        return "expired"
    return "replaced" if state.superseded_by else "live"


def _bucket_lines(buckets: Sequence[BucketFacts]) -> Iterator[str]:
    """Yield how many buckets of each kind hold how many states, then each hot bucket."""
    for kind, group in groupby(buckets, key=lambda bucket: bucket.kind):
        of_kind = list(group)
        fills = sorted(Counter(bucket.entries for bucket in of_kind).items())
        counts = ", ".join(f"{count} with {entries or 'none'}" for entries, count in fills)
        yield row("buckets" if of_kind[0] is buckets[0] else "", f"{kind:<8} {counts}, of at most {of_kind[0].cap}")
    for bucket in buckets:
        if bucket.is_hot:
            yield row("  HOT", f"{bucket.kind:<8} {bucket.key}: {bucket.entries} of {bucket.cap}")


def _family_object(member: MemberFacts) -> dict[str, Any]:
    known = family_object(member.facts) if member.facts else {}
    return {"number": member.number, "ordinal": member.ordinal, **known}


def _state_object(state: StateFacts) -> dict[str, Any]:
    signature = state.signature
    return {
        "number": state.number,
        "status": _status(state),
        "version": signature.version,
        "observed_at_ms": signature.observed_at_ms,
        "expires_at_ms": state.expires_at_ms,
        "registered_at_ms": state.registered_at_ms,
        "superseded_by": state.superseded_by,
        "decided": state.decided,
        "family": state.family and _family_object(state.family),
        "signature": state.position._asdict(),
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
