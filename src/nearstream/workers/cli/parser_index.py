"""Declare the commands for the index and its schemes."""

import argparse
from typing import TYPE_CHECKING, get_args

from nearstream.schemas.labels.label import WEIGHT_MAX, LabelKind
from nearstream.workers.cli.arguments import document_id, family, whole_number
from nearstream.workers.cli.parser_options import (
    add,
    add_against,
    add_collection,
    add_group,
    add_json,
    add_quiet,
    add_timeout,
)

if TYPE_CHECKING:
    from nearstream.workers.cli.parser_options import Commands

TOP_MAX = 100_000


def add_index_commands(commands: "Commands") -> None:
    """Add the commands for the index and its schemes."""
    _add_check(commands)
    _add_novel(commands)
    inspect = add(
        commands,
        "inspect",
        "document_commands:show_document",
        "show the states and buckets of one document in the index",
        example="nearstream inspect https://a.example/1 --collection news",
        no="the id is unknown",
    )
    inspect.add_argument("id", type=document_id, metavar="ID", help="id of the document")
    add_json(inspect, "one JSON object")
    add_quiet(inspect)
    remove = add(
        commands,
        "remove",
        "document_commands:remove_by_id",
        "remove documents, and say which were live",
        example="nearstream remove https://a.example/1",
        no="a document was not live",
    )
    remove.add_argument("ids", nargs="+", type=document_id, metavar="ID", help="ids of the documents")
    add_json(remove, "one JSON object per line")
    for command in (inspect, remove):
        add_collection(command, "documents")
    stats = add(
        commands,
        "stats",
        "stats_commands:show_stats",
        "show how large the index is, and how much of Redis it takes",
        example="nearstream stats --json",
    )
    stats.add_argument(
        "--internals",
        action="store_true",
        help="show chunks, memory and checkpoints of each slot instead",
    )
    add_json(stats, "one JSON object, with --internals one for each slot")
    families = add(
        commands,
        "families",
        "family_commands:show_families",
        "show the largest families of copies and their growth",
        example="nearstream families --top 20",
    )
    families.add_argument(
        "--top",
        type=whole_number(1, TOP_MAX),
        default=10,
        metavar="N",
        help="show N of the largest and N of the fastest growing (default 10)",
    )
    add_json(families, "one JSON object per line, one for each family")
    _add_members(families)
    _add_label(commands)
    rebuild = add(
        commands,
        "rebuild",
        "rebuild_commands:rebuild_index",
        "rebuild a lost index, sending no events",
        example="nearstream rebuild",
        no="the index is not empty, another rebuild runs, or no signature has the scheme",
    )
    for command in (stats, families, rebuild):
        add_quiet(command)
    for command in (inspect, remove, stats, families, rebuild):
        add_timeout(command, 10.0)
    _add_scheme_commands(commands)


def _add_members(families: argparse.ArgumentParser) -> None:
    """Add the command that shows one family."""
    actions = families.add_subparsers(metavar="action")
    members = add(
        actions,
        "members",
        "family_commands:show_members",
        "show all documents of the family that a document is in",
        example="nearstream families members '<12@a.example>'",
        no="the id is unknown",
    )
    members.add_argument("id", type=document_id, metavar="ID", help="id of any document of the family")
    add_collection(members, "documents")
    add_json(members, "one JSON object per line")
    add_timeout(members, 10.0)


def _add_label(commands: "Commands") -> None:
    """Add the commands that label documents."""
    actions = add_group(commands, "label", "say of documents that they are spam, or ham: spam, ham, confirm, revoke")
    for label in get_args(LabelKind):
        command = add(
            actions,
            label,
            "label_commands:label_as",
            f"say of documents that they are {label}",
            example="nearstream label spam '<12@a.example>' reported/*.eml",
            no="an id is unknown",
        )
        command.set_defaults(label=label)
        command.add_argument(
            "targets", nargs="+", metavar="ID | FILE", help="ids of documents, or files as for `nearstream scan`"
        )
        command.add_argument(
            "--weight",
            type=whole_number(1, WEIGHT_MAX),
            default=1,
            metavar="N",
            help=f"how much the label counts, 1 to {WEIGHT_MAX} (default 1)",
        )
        add_collection(command, "ids")
        add_timeout(command, 10.0)
    for name, confirms, meaning in (("confirm", True, "let it count again"), ("revoke", False, "take it back")):
        command = add(
            actions,
            name,
            "label_commands:decide",
            f"decide about a suspended label of a family: {meaning}",
            example="nearstream label revoke 8e14c1d20f6b4a7793a05d2e61b8c0f4",
            no="no label of the family is suspended",
        )
        command.set_defaults(confirms=confirms)
        command.add_argument("family", type=family, metavar="FAMILY", help="id of the family, as the alert says")
        add_collection(command, "documents")
        add_timeout(command, 10.0)


def _add_check(commands: "Commands") -> None:
    """Add the command that asks the index."""
    check = add(
        commands,
        "check",
        "check_commands:check_documents",
        "say what documents are to those in the index, without adding them",
        example="nearstream check --signature signatures --bare",
        no="no document is related to one in the index",
    )
    check.add_argument("paths", nargs="*", metavar="PATH", help="files with documents, as for `nearstream scan`")
    check.add_argument(
        "--signature",
        metavar="FILE",
        help="in place of documents: signatures from `nearstream sign` (-: stdin)",
    )
    add_against(check)
    form = check.add_mutually_exclusive_group()
    form.add_argument("--bare", action="store_true", help="print only `yes` (related) or `no` for each document")
    add_json(form, "one JSON object per line")
    add_timeout(check, 10.0)


def _add_novel(commands: "Commands") -> None:
    """Add the command that prints what is new."""
    novel = add(
        commands,
        "novel",
        "check_commands:show_new_parts",
        "print the parts of documents that none in the index has, without adding them",
        example="nearstream novel draft.md",
        no="nothing is new in any document",
    )
    novel.add_argument("paths", nargs="+", metavar="PATH", help="files with documents, as for `nearstream scan`")
    add_against(novel)
    add_json(novel, "one JSON object per line")
    add_timeout(novel, 10.0)


def _add_scheme_commands(commands: "Commands") -> None:
    """Add the commands that build and switch to the index of another scheme."""
    actions = add_group(commands, "index", "manage schemes: list, build, switch, drop")
    listing = add(
        actions,
        "list",
        "index_commands:list_schemes",
        "list the schemes: active, building or retired; their indexes",
        example="nearstream index list",
    )
    build = add(
        actions,
        "build",
        "rebuild_commands:build_index",
        "build the index of another scheme beside the active one",
        example="NEARSTREAM_BANDS=16 NEARSTREAM_ROWS=6 nearstream index build",
        no="the index is not empty, another rebuild runs, or no signature has the scheme",
    )
    add_quiet(build)
    switch = add(
        actions,
        "switch",
        "index_commands:switch_index",
        "make a scheme active and retire the active one",
        example="nearstream index switch",
        no="the scheme is unknown, or its index is not ready",
    )
    switch.add_argument("scheme", nargs="?", metavar="SCHEME", help="name of the scheme (default: from the settings)")
    for command in (listing, switch):
        add_json(command, "one JSON object per line")
    drop = add(
        actions,
        "drop",
        "index_commands:drop_index",
        "delete the index of a scheme that is not active",
        example="nearstream index drop letters-1-u14-k0d3e89c8-cd9cec30",
        no="the scheme is unknown or active",
    )
    drop.add_argument("scheme", metavar="SCHEME", help="name of the scheme")
    for command in (listing, build, switch, drop):
        add_timeout(command, 10.0)
