"""Send documents, removals and labels to Kafka."""

import argparse
import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, get_args

from nearstream.schemas.labels.label import WEIGHT_MAX, Label, LabelKind
from nearstream.workers.cli.arguments import (
    add,
    add_collection,
    add_json,
    add_paths,
    add_timeout,
    declare,
    document_id,
    family,
    whole_number,
)
from nearstream.workers.config.exit_codes import Exit
from nearstream.workers.config.settings import Settings
from nearstream.workers.operations.terminal import PATH_CHARACTERS, escaped, print_json, print_line, print_message
from nearstream.workers.pipeline.deployment import Deployment

if TYPE_CHECKING:
    from nearstream.workers.files.source import Refused
    from nearstream.workers.operations.labelling import Labelled, Target

# What a command needs of the operations is imported on use: each loads clients that the others do not need.


def add_produce(parser: argparse.ArgumentParser) -> None:
    """Declare `nearstream produce`."""
    declare(parser, send_documents, example="nearstream produce documents.jsonl.gz")
    add_paths(parser)
    signatures = "PATH are files of `nearstream sign`: send signatures, no documents"
    parser.add_argument("--signatures", action="store_true", help=signatures)
    add_timeout(parser, 10.0)


def send_documents(settings: Settings, options: argparse.Namespace) -> Exit:
    """Send the documents of files to their topic, or the signatures that files hold to theirs."""
    from nearstream.workers.operations.produce import produce_files, produce_signatures

    produce = produce_signatures if options.signatures else produce_files
    produced = asyncio.run(produce(Deployment.of(settings), options.paths, options.timeout, quiet=options.quiet))
    not_whole = "".join(f", {number} {reason}" for reason, number in produced.incomplete.most_common())
    print_message(f"sent {produced.sent}, refused {produced.refused}{not_whole}")
    if produced.passed_over:
        print_message(f"passed over {', '.join(f'{n} {reason}' for reason, n in produced.passed_over.most_common())}")
    return Exit.UNREADABLE if produced.refused else Exit.OK


def add_remove(parser: argparse.ArgumentParser) -> None:
    """Declare `nearstream remove`."""
    declare(parser, remove_by_id, example="nearstream remove https://a.example/1", no="a document was not live")
    parser.add_argument("ids", nargs="+", type=document_id, metavar="ID", help="ids of the documents")
    add_json(parser, "one JSON object per line")
    add_collection(parser, "documents")
    add_timeout(parser, 10.0)


def remove_by_id(settings: Settings, options: argparse.Namespace) -> Exit:
    """Send the removal of documents, and print what the index held of each."""
    from nearstream.workers.operations.inspection import DocumentStatus
    from nearstream.workers.operations.remove import remove_documents

    held = {
        DocumentStatus.LIVE: "live",
        DocumentStatus.EXPIRED: "expired",
        DocumentStatus.UNKNOWN: "not in the index",
    }
    deployment = Deployment.of(settings)
    removed = asyncio.run(remove_documents(deployment, options.ids, options.collection, options.timeout))
    for document in removed:
        if options.json:
            print_json({"document": document.document_key, "status": document.status})
        else:
            print_line(f"{escaped(document.document_key)}: {held[document.status]}, removal sent")
    return Exit.OK if all(document.status is DocumentStatus.LIVE for document in removed) else Exit.NO


def add_label(parser: argparse.ArgumentParser) -> None:
    """Declare `nearstream label` with its actions."""
    actions = parser.add_subparsers(required=True, metavar="action")
    for label in get_args(LabelKind):
        summary, example = f"say of documents that they are {label}", _LABEL_EXAMPLE
        command = add(actions, label, summary, label_as, example=example, no="an id is unknown")
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
        summary, example = f"decide about a suspended label of a family: {meaning}", _DECIDE_EXAMPLE
        command = add(actions, name, summary, decide, example=example, no="no label of the family is suspended")
        command.set_defaults(confirms=confirms)
        command.add_argument("family", type=family, metavar="FAMILY", help="id of the family, as the alert says")
        add_collection(command, "documents")
        add_timeout(command, 10.0)


_LABEL_EXAMPLE = "nearstream label spam '<12@a.example>' reported/*.eml"
_DECIDE_EXAMPLE = "nearstream label revoke 8e14c1d20f6b4a7793a05d2e61b8c0f4"


def label_as(settings: Settings, options: argparse.Namespace) -> Exit:
    """Label documents, given by their ids or as files."""
    from nearstream.workers.files.source import Refused
    from nearstream.workers.operations.labelling import label_documents

    deployment, targets, refused = Deployment.of(settings), [], False
    for item in _targets(deployment, options):
        if isinstance(item, Refused):
            print_message(f"refused {escaped(item.source, PATH_CHARACTERS)}: {item.reason}")
            refused = True
        else:
            targets.append(item)
    label = Label(label=options.label, weight=options.weight)
    found = asyncio.run(label_documents(deployment, targets, label, options.timeout)) if targets else []
    for labelled in found:
        print_line(_line(labelled, options.label))
    if refused:
        return Exit.UNREADABLE
    return Exit.OK if all(labelled.is_sent for labelled in found) else Exit.NO


def decide(settings: Settings, options: argparse.Namespace) -> Exit:
    """Confirm the suspended labels of a family, or take them back."""
    from nearstream.workers.operations.labelling import decide_label

    deployment, confirms = Deployment.of(settings), options.confirms
    deciding = decide_label(deployment, options.collection, options.family, options.timeout, confirms=confirms)
    names = asyncio.run(deciding)
    if names is None:
        print_line(f"{options.family}: no label of this family is suspended")
        return Exit.NO
    print_line(f"{options.family}: {'confirmed' if confirms else 'taken back'}")
    for name in names:
        print_line(f"  {escaped(name)}")
    return Exit.OK


def _targets(deployment: Deployment, options: argparse.Namespace) -> Iterator["Target | Refused"]:
    """Yield the documents to be labelled, and the files that cannot be read."""
    from nearstream.workers.files.source import Refused
    from nearstream.workers.operations.labelling import Target
    from nearstream.workers.operations.signatures import sign_files

    for given in options.targets:
        if not Path(given).exists():
            try:
                yield Target(options.collection, document_id(given))
            except argparse.ArgumentTypeError as error:
                yield Refused(given, str(error))
            continue
        for item in sign_files(deployment, [given]):
            if isinstance(item, Refused):
                yield item
            else:
                yield Target(item.signature.collection, item.signature.id, item.signature)


def _line(labelled: "Labelled", label: str) -> str:
    shown = escaped(labelled.document_id)
    if labelled.is_sent:
        return f"{shown}: {label} sent" + (", with its signature, because the index did not have it" * labelled.is_new)
    if labelled.known is not None:
        return f"{shown}: not in the index, which has {escaped(labelled.known)}"
    return f"{shown}: not in the index, and no file"
