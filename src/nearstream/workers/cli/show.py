"""Show one document of the index, its family, or how two documents relate."""

import argparse
import asyncio
import time
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from msgspec import to_builtins

from nearstream.schemas.documents.document import document_key
from nearstream.schemas.documents.signature import Signature
from nearstream.schemas.topics.codec import InvalidMessageError
from nearstream.streams.matching.family import FamilyFacts
from nearstream.workers.cli.arguments import add_collection, add_json, add_quiet, add_timeout, declare, document_id
from nearstream.workers.cli.compare import print_pair
from nearstream.workers.cli.stats import family_report
from nearstream.workers.config.exit_codes import Exit
from nearstream.workers.config.settings import Settings
from nearstream.workers.files.content import UnreadableFileError
from nearstream.workers.operations.terminal import (
    escaped,
    print_json,
    print_line,
    print_message,
    print_report,
    row,
    utc_time,
)
from nearstream.workers.pipeline.deployment import Deployment

if TYPE_CHECKING:
    from nearstream.streams.store.record import Recorded
    from nearstream.workers.operations.inspection import Inspected
    from nearstream.workers.redis.index.index import RedisIndex
    from nearstream.workers.redis.reading.inspect import StateFacts

_PAGE = 1_000
# The fields of a signature that say something to a person.
_SIGNED = (
    *("version", "observed_at_ms", "origin", "lineage", "url", "source", "labels"),
    *("characters", "words", "n_bytes", "degraded"),
)


def add_show(parser: argparse.ArgumentParser) -> None:
    """Declare `nearstream show`."""
    example = "nearstream show https://a.example/1 https://a.example/2"
    declare(parser, show, example=example, no="an id is unknown")
    meaning = (
        "one id: a document of the index. Two: how they relate; in place of one id, a file with one document, where "
        "id:X is always an id"
    )
    parser.add_argument("names", nargs="+", type=document_id, metavar="ID", help=meaning)
    members = "of one id: all documents of its family, one a line"
    parser.add_argument("--members", action="store_true", help=members)
    add_collection(parser, "ids")
    add_json(parser, "one JSON object, with --members one for each document")
    add_quiet(parser)
    add_timeout(parser, 10.0)


def show(settings: Settings, options: argparse.Namespace) -> Exit:
    """Print what is known of one document, or of two."""
    deployment = Deployment.of(settings)
    if len(options.names) > 2 or (options.members and len(options.names) != 1):
        print_message("nearstream show: one or two ids expected, one with --members")
        return Exit.USAGE
    if options.members:
        return asyncio.run(_show_members(deployment, options))
    if len(options.names) == 1:
        return _show_document(deployment, options)
    from nearstream.workers.operations.explaining import explain

    asked = explain(deployment, options.names, options.collection, options.timeout, quiet=options.quiet)
    try:
        explained = asyncio.run(asked)
    except (InvalidMessageError, UnreadableFileError) as error:
        print_message(f"nearstream: {error}")
        return Exit.UNREADABLE
    print_pair(deployment, explained, is_json=options.json)
    return Exit.NO if explained.later.is_unknown or explained.earlier.is_unknown else Exit.OK


def _show_document(deployment: Deployment, options: argparse.Namespace) -> Exit:
    from nearstream.workers.operations.inspection import inspect

    name = document_key(options.collection, options.names[0])
    inspected = asyncio.run(inspect(deployment, name, options.timeout, quiet=options.quiet))
    lines = document_lines(inspected, time.time_ns() // 1_000_000)
    print_report(document_report(inspected), lines, is_json=options.json)
    return Exit.NO if inspected.status == "unknown" else Exit.OK


async def _show_members(deployment: Deployment, options: argparse.Namespace) -> Exit:
    from nearstream.workers.redis.index.index import index_to_read
    from nearstream.workers.redis.reading.members import stored_family

    name = options.names[0]
    async with index_to_read(replace(deployment.index_address(), beside=True), options.timeout) as index:
        family = await stored_family(index, document_key(options.collection, name))
        if family is None:
            print_line(f"{escaped(name)}: not in the index")
            return Exit.NO
        if not options.json:
            print_line(f"family {family.family_id}, size {family.size}")
        async with aclosing(_all_members(index, family)) as found:
            async for member in found:
                observed_at = utc_time(member.observed_at_ms, "milliseconds")
                if options.json:
                    fields = {"id": member.id, "version": member.version, "observed_at": observed_at}
                    print_json({"family": family.family_id, **fields})
                else:
                    print_line(f"{observed_at}  {escaped(member.id)}")
    return Exit.OK


async def _all_members(index: "RedisIndex", family: FamilyFacts) -> AsyncGenerator["Recorded"]:
    from nearstream.workers.redis.reading.members import members

    after: int | None = 0
    while after is not None:
        found, after = await members(index, family, after, _PAGE)
        for member in found:
            yield member


def document_report(inspected: "Inspected") -> dict[str, Any]:
    """Return what is known of a document for JSON."""
    told: dict[str, Any] = to_builtins(replace(inspected, states=(), signature=None))
    del told["signature"]
    told["states"] = list(map(_state_report, inspected.states))
    return told


def _state_report(state: "StateFacts") -> dict[str, Any]:
    told: dict[str, Any] = to_builtins(state)
    member = state.family
    family = member and member.facts and to_builtins(family_report(member.facts))
    return told | {
        "status": _status(state),
        "position": state.position._asdict(),
        "signature": {name: getattr(state.signature, name) for name in _SIGNED},
        "family": member and {"number": member.number, "ordinal": member.ordinal, **(family or {})},
        "pairs": [{"number": pair.number, "relation": pair.relation, "sent": pair.is_sent} for pair in state.pairs],
    }


def document_lines(inspected: "Inspected", now_ms: int) -> Iterator[str]:
    """Yield the status of a document, its current state and all its states."""
    states = inspected.states
    yield f"{escaped(inspected.document_key)}: {inspected.status}{_expiry(states, now_ms)}"
    if inspected.reason:
        yield row("", inspected.reason)
    yield row("scheme", inspected.scheme)
    if not states:
        return
    yield from _signature_lines(states[0].signature)
    yield from _family_lines(states[0])
    if reached := inspected.reached:
        said = f"{reached.known or 'not reached'}{reached.witness and f', {reached.witness}'}"
        yield row("labels", f"{said}: spam {reached.labels.spam}, ham {reached.labels.ham}")
    yield from _state_lines(states)


def _expiry(states: "Sequence[StateFacts]", now_ms: int) -> str:
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


def _family_lines(state: "StateFacts") -> Iterator[str]:
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


def _state_lines(states: "Sequence[StateFacts]") -> Iterator[str]:
    yield row("states", f"{'number':>8}  {'version':<16}  {'':<8}  {'signature':<16}  bytes  events  observed")
    for state in states:
        position = f"{state.position.partition} offset {state.position.offset}"
        yield row(
            "",
            f"{state.number:>8}  {state.signature.version}  {_status(state):<8}  {position:<16}"
            f"  {state.record_bytes:>5}  {state.reports:>6}  {utc_time(state.signature.observed_at_ms)}",
        )


def _status(state: "StateFacts") -> str:
    if state.expired:
        return "expired"
    return "replaced" if state.superseded_by else "live"
