"""Show one document of the index, its family, or how two documents relate."""

import argparse
import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from msgspec import to_builtins

from nearstream.schemas.documents.document import document_key
from nearstream.streams.matching.family import FamilyFacts
from nearstream.workers.cli.arguments import add_collection, add_json, add_quiet, add_timeout, declare, document_id
from nearstream.workers.cli.compare import print_pair
from nearstream.workers.cli.stats import family_report
from nearstream.workers.config.exit_codes import Exit
from nearstream.workers.config.settings import Settings
from nearstream.workers.operations.terminal import (
    escaped,
    print_json,
    print_line,
    print_message,
    print_report,
    report_lines,
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
    meaning = "one id: a document of the index. Two: how they relate"
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
    explained = asyncio.run(asked)
    print_pair(deployment, explained, is_json=options.json)
    return Exit.NO if explained.later.is_unknown or explained.earlier.is_unknown else Exit.OK


def _show_document(deployment: Deployment, options: argparse.Namespace) -> Exit:
    from nearstream.workers.operations.inspection import inspect

    name = document_key(options.collection, options.names[0])
    inspected = asyncio.run(inspect(deployment, name, options.timeout, quiet=options.quiet))
    report = document_report(inspected)
    print_report(report, report_lines(report), is_json=options.json)
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
    """Return what is known of a document, as it is printed."""
    told: dict[str, Any] = to_builtins(replace(inspected, states=(), signature=None))
    del told["signature"]
    told["states"] = list(map(_state_report, inspected.states))
    return told


def _state_report(state: "StateFacts") -> dict[str, Any]:
    told: dict[str, Any] = to_builtins(state)
    member = state.family
    family = member and member.facts and family_report(member.facts)
    return {
        "status": _status(state),
        **told,
        "position": state.position._asdict(),
        "signature": {name: getattr(state.signature, name) for name in _SIGNED},
        "family": member and {"number": member.number, "ordinal": member.ordinal, **(family or {})},
        "pairs": [{"number": pair.number, "relation": pair.relation, "sent": pair.is_sent} for pair in state.pairs],
    }


def _status(state: "StateFacts") -> str:
    if state.expired:
        return "expired"
    return "replaced" if state.superseded_by else "live"
