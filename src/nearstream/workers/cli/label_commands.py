"""Label documents as spam or ham."""

import argparse
import asyncio
from collections.abc import Iterator
from pathlib import Path

from nearstream.schemas.labels.label import Label
from nearstream.workers.cli.arguments import document_id
from nearstream.workers.config.exit_codes import Exit
from nearstream.workers.config.settings import Settings
from nearstream.workers.files.source import Refused
from nearstream.workers.operations.labelling import Labelled, Target, decide_label, label_documents
from nearstream.workers.operations.signatures import sign_files
from nearstream.workers.operations.terminal import PATH_CHARACTERS, escaped, print_line, print_message
from nearstream.workers.pipeline.deployment import Deployment


def label_as(settings: Settings, options: argparse.Namespace) -> Exit:
    """Label documents, given by their ids or as files."""
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


def _targets(deployment: Deployment, options: argparse.Namespace) -> Iterator[Target | Refused]:
    """Yield the documents to be labelled, and the files that cannot be read."""
    for given in options.targets:
        if not Path(given).exists():
            yield _named(given, options.collection)
            continue
        for item in sign_files(deployment, [given]):
            if isinstance(item, Refused):
                yield item
            else:
                yield Target(item.signature.collection, item.signature.id, item.signature)


def _named(given: str, collection: str) -> Target | Refused:
    try:
        return Target(collection, document_id(given))
    except argparse.ArgumentTypeError as error:
        return Refused(given, str(error))


def _line(labelled: Labelled, label: str) -> str:
    shown = escaped(labelled.document_id)
    if labelled.is_sent:
        return f"{shown}: {label} sent" + (", with its signature, because the index did not have it" * labelled.is_new)
    if labelled.known is not None:
        return f"{shown}: not in the index, which has {escaped(labelled.known)}"
    return f"{shown}: not in the index, and no file"
