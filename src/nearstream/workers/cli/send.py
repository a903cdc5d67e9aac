"""Send documents, removals and labels to Kafka."""

import argparse
import asyncio
import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, get_args

from msgspec.structs import replace

from nearstream.schemas.documents.document import DEFAULT_COLLECTION
from nearstream.schemas.labels.label import WEIGHT_MAX, Label, LabelKind
from nearstream.workers.cli.arguments import (
    add_collection,
    add_json,
    add_paths,
    add_timeout,
    declare,
    document_id,
    whole_number,
)
from nearstream.workers.config.exit_codes import Exit
from nearstream.workers.config.settings import Settings
from nearstream.workers.operations.terminal import PATH_CHARACTERS, escaped, print_line, print_message, print_report
from nearstream.workers.pipeline.deployment import Deployment

if TYPE_CHECKING:
    from nearstream.workers.files.source import Refused
    from nearstream.workers.operations.sending import Labelled, Target

FAMILY_ID = re.compile("[0-9a-f]{32}")
_DECISIONS = ("confirm", "revoke")  # about suspended labels

# What a command needs of the operations is imported on use: each loads clients that the others do not need.


def add_produce(parser: argparse.ArgumentParser) -> None:
    """Declare `nearstream produce`."""
    declare(parser, send_documents, example="nearstream produce documents.jsonl.gz")
    add_paths(parser)
    signatures = "PATH are files of `nearstream sign`: send signatures, no documents"
    kinds = parser.add_mutually_exclusive_group()
    kinds.add_argument("--signatures", action="store_true", help=signatures)
    index = "PATH are indexes of `scan --index` or `serve --index`: send their signatures and labels"
    kinds.add_argument("--index", action="store_true", help=index)
    add_timeout(parser, 10.0)


def send_documents(settings: Settings, options: argparse.Namespace) -> Exit:
    """Send the documents of files to their topic, or the signatures that files hold to theirs."""
    from nearstream.workers.files.tables import Columns
    from nearstream.workers.operations.sending import produce_files, produce_indexes, produce_signatures

    columns = Columns(options.text_column, options.id_column)
    kinds = {options.signatures: produce_signatures, options.index: produce_indexes}
    produce = kinds.get(True, partial(produce_files, columns=columns))
    produced = asyncio.run(produce(Deployment.of(settings), options.paths, options.timeout, quiet=options.quiet))
    not_whole = "".join(f", {number} {reason}" for reason, number in produced.incomplete.most_common())
    print_message(f"sent {produced.sent}, refused {produced.refused}{not_whole}")
    if produced.passed_over:
        print_message(f"passed over {', '.join(f'{n} {reason}' for reason, n in produced.passed_over.most_common())}")
    return Exit.UNREADABLE if produced.refused else Exit.OK


def add_remove(parser: argparse.ArgumentParser) -> None:
    """Declare `nearstream remove`."""
    declare(parser, remove_by_id, example="nearstream remove https://a.example/1", no="a document was not live")
    parser.add_argument("ids", nargs="*", type=document_id, metavar="ID", help="ids of the documents")
    parser.add_argument("--person", metavar="ADDRESS", help="all mails that this address has sent or got, too")
    add_json(parser, "one JSON object per line")
    add_collection(parser, "documents")
    add_timeout(parser, 10.0)


def remove_by_id(settings: Settings, options: argparse.Namespace) -> Exit:
    """Send the removal of documents, and print what the index held of each."""
    from nearstream.workers.operations.sending import mails_of, remove_documents

    deployment, ids = Deployment.of(settings), options.ids
    if options.person:
        ids = [*ids, *asyncio.run(mails_of(deployment, options.person, options.collection, options.timeout))]
    removed = asyncio.run(remove_documents(deployment, ids, options.collection, options.timeout)) if ids else {}
    for key, status in removed.items():
        held = "not in the index" if status == "unknown" else status
        report = {"document_key": key, "status": status}
        print_report(report, [f"{escaped(key)}: {held}, removal sent"], is_json=options.json)
    return Exit.OK if {"live"}.issuperset(removed.values()) and ids else Exit.NO


def add_label(parser: argparse.ArgumentParser) -> None:
    """Declare `nearstream label`."""
    example, no = "nearstream label spam '<12@a.example>' reported/*.eml", "an id is unknown, or no label is suspended"
    declare(parser, label, example=example, no=no)
    parser.add_argument(
        "label",
        choices=(*get_args(LabelKind), *_DECISIONS),
        help="spam, ham: what the documents are; confirm, revoke: let the suspended labels of a family count, or take "
        "them back",
    )
    targets = "ids of documents, or files as for `nearstream scan`; for confirm and revoke the ids of families"
    parser.add_argument("targets", nargs="+", metavar="ID | FILE", help=targets)
    parser.add_argument(
        "--weight",
        type=whole_number(1, WEIGHT_MAX),
        default=1,
        metavar="N",
        help=f"how much the label counts, 1 to {WEIGHT_MAX} (default 1)",
    )
    add_collection(parser, "documents")
    add_timeout(parser, 10.0)


def label(settings: Settings, options: argparse.Namespace) -> Exit:
    """Label documents, given by their ids or as files, or decide about the suspended labels of families."""
    deployment = Deployment.of(settings)
    if options.label not in _DECISIONS:
        return _label_documents(deployment, options)
    if any(not FAMILY_ID.fullmatch(family) for family in options.targets):
        print_message("nearstream label: ids of families expected, each of 32 hex digits, as the alert names them")
        return Exit.USAGE
    return Exit.OK if all([_decide(deployment, options, family) for family in options.targets]) else Exit.NO


def _label_documents(deployment: Deployment, options: argparse.Namespace) -> Exit:
    from nearstream.workers.files.source import Refused
    from nearstream.workers.operations.sending import label_documents

    targets, refused = [], False
    for item in _targets(deployment, options):
        if isinstance(item, Refused):
            print_message(f"refused {escaped(item.source, PATH_CHARACTERS)}: {item.reason}")
            refused = True
        else:
            targets.append(item)
    given = Label(label=options.label, weight=options.weight)
    found = asyncio.run(label_documents(deployment, targets, given, options.timeout)) if targets else []
    for labelled in found:
        print_line(_line(labelled, options.label))
    if refused:
        return Exit.UNREADABLE
    return Exit.OK if all(labelled.is_sent for labelled in found) else Exit.NO


def _decide(deployment: Deployment, options: argparse.Namespace, family: str) -> bool:
    from nearstream.workers.operations.sending import decide_label

    confirms = options.label == "confirm"
    names = asyncio.run(decide_label(deployment, options.collection, family, options.timeout, confirms=confirms))
    if names is None:
        print_line(f"{family}: no label of this family is suspended")
        return False
    print_line(f"{family}: {'confirmed' if confirms else 'taken back'}")
    for name in names:
        print_line(f"  {escaped(name)}")
    return True


def _targets(deployment: Deployment, options: argparse.Namespace) -> Iterator["Target | Refused"]:
    from nearstream.workers.files.source import Refused
    from nearstream.workers.operations.signatures import sign_files

    for given in options.targets:
        if not Path(given).exists():
            try:
                yield options.collection, document_id(given), None
            except argparse.ArgumentTypeError as error:
                yield Refused(given, str(error))
            continue
        for item in sign_files(deployment, [given]):
            if isinstance(item, Refused):
                yield item
            else:
                own = item.signature
                in_it = replace(own, collection=options.collection) if own.collection == DEFAULT_COLLECTION else own
                yield in_it.collection, in_it.id, in_it


def _line(labelled: "Labelled", label: str) -> str:
    shown = escaped(labelled.document_id)
    if labelled.is_sent:
        return f"{shown}: {label} sent" + (", with its signature, because the index did not have it" * labelled.is_new)
    if labelled.known is not None:
        return f"{shown}: not in the index, which has {escaped(labelled.known)}"
    return f"{shown}: not in the index, and no file"
