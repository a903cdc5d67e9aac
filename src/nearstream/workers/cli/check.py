"""Sign documents, and ask the index about them: what they are, or what is new in them."""

import argparse
import asyncio
from collections import Counter
from collections.abc import Iterator
from contextlib import aclosing
from typing import TYPE_CHECKING

import msgspec

from nearstream.schemas.checks.check import CheckAnswer
from nearstream.schemas.documents.evidence import Amount, SourceRef
from nearstream.schemas.topics.codec import encode_signature_line
from nearstream.workers.cli.arguments import add_against, add_json, add_paths, add_timeout, declare
from nearstream.workers.cli.events import KIND_COLUMNS, reference_line, with_details
from nearstream.workers.config.exit_codes import Exit
from nearstream.workers.config.settings import Settings
from nearstream.workers.operations.terminal import (
    PATH_CHARACTERS,
    escaped,
    print_json,
    print_line,
    print_message,
    print_report,
    printable,
)
from nearstream.workers.pipeline.deployment import Deployment

if TYPE_CHECKING:
    from nearstream.streams.relations.novelty import Novelty
    from nearstream.workers.files.source import Refused
    from nearstream.workers.operations.signatures import (
        Checked,  # it loads the client of Redis, which `sign` does not need
        Signed,
    )

_NOT_SHOWN = ("degraded", "reason", "learned", "learn_reason")
_PUBLIC_KEY = "nearstream: NEARSTREAM_HASH_KEY is not set: whoever sees these signatures can test guesses of the texts"


def add_sign(parser: argparse.ArgumentParser) -> None:
    """Declare `nearstream sign`."""
    declare(parser, write_signatures, example="nearstream sign manuscripts/*.txt > signatures")
    add_paths(parser)
    left_out = "leave out ids, URLs, labels and addresses: the id is the digest"
    parser.add_argument("--anonymous", action="store_true", help=left_out)


def write_signatures(settings: Settings, options: argparse.Namespace) -> Exit:
    """Print the signature of each document of files, one in each line."""
    from nearstream.workers.files.source import Refused
    from nearstream.workers.files.tables import Columns
    from nearstream.workers.operations.signatures import anonymous, report, sign_files

    if not settings.hash_key:
        print_message(_PUBLIC_KEY)
    refused, columns = False, Columns(options.text_column, options.id_column)
    for item in sign_files(Deployment.of(settings), options.paths, columns):
        if isinstance(item, Refused):
            refused = True
            _refuse(item)
        else:
            report(item.source, item.degraded, Counter())
            signature = anonymous(item.signature) if options.anonymous else item.signature
            print_line(encode_signature_line(signature).decode())
    return Exit.UNREADABLE if refused else Exit.OK


def add_check(parser: argparse.ArgumentParser) -> None:
    """Declare `nearstream check`."""
    example = "nearstream check --signature signatures --bare"
    declare(parser, check_documents, example=example, no="no document is related to one in the index")
    parser.add_argument("paths", nargs="*", metavar="PATH", help="files with documents, as for `nearstream scan`")
    parser.add_argument(
        "--signature",
        metavar="FILE",
        help="in place of documents: signatures from `nearstream sign` (-: stdin)",
    )
    add_against(parser)
    form = parser.add_mutually_exclusive_group()
    new = "print the parts of documents that none in the index has, each with its place; exit code 1: there is none"
    parser.add_argument("--novel", action="store_true", help=new)
    form.add_argument("--bare", action="store_true", help="print only `yes` (related) or `no` for each document")
    add_json(form, "one JSON object per line")
    add_timeout(parser, 10.0)


def check_documents(settings: Settings, options: argparse.Namespace) -> Exit:
    """Print how documents relate to those in the index, or only whether they do."""
    from nearstream.workers.operations.signatures import read_signatures, sign_files

    if bool(options.paths) == bool(options.signature) or (options.novel and (options.signature or options.bare)):
        print_message("nearstream check: files expected, or --signature FILE, or files with --novel")
        return Exit.USAGE
    deployment = Deployment.of(settings)
    if options.signature:
        questions = read_signatures(deployment.scheme, [options.signature])
    else:
        questions = sign_files(deployment, options.paths, against=options.against)
    return asyncio.run(_ask(deployment, questions, options))


async def _ask(deployment: Deployment, questions: "Iterator[Signed | Refused]", options: argparse.Namespace) -> Exit:
    """Show each answer, and return the exit code: a file was unreadable, an answer was yes, or none was."""
    from nearstream.workers.files.source import Refused
    from nearstream.workers.operations.signatures import check_signatures

    outcomes = set()
    async with aclosing(check_signatures(deployment, questions, options.timeout, options.against)) as answers:
        async for item in answers:
            if isinstance(item, Refused):
                _refuse(item)
                outcomes.add(Exit.UNREADABLE)
            else:
                outcomes.add(Exit.OK if _show(item, options) else Exit.NO)
    return next((each for each in (Exit.UNREADABLE, Exit.OK) if each in outcomes), Exit.NO)


def _refuse(item: "Refused") -> None:
    print_message(f"refused {escaped(item.source, PATH_CHARACTERS)}: {item.reason}")


def _show(checked: "Checked", options: argparse.Namespace) -> bool:
    signed, answer, _ = checked
    document_id, is_yes = signed.signature.id, bool(answer.match or answer.references)
    if options.novel:
        report = new_parts(*checked)
        print_report(report, part_lines(report), is_json=options.json, flush=True)
        return bool(report.parts)
    if options.bare:
        print_line("yes" if is_yes else "no", flush=True)
    elif options.json:
        fields = msgspec.structs.asdict(answer)
        told = {name: fields[name] for name in fields if name not in _NOT_SHOWN}
        print_json({"id": document_id, **told}, flush=True)
    else:
        print_line(_line(document_id, answer), flush=True)
        for each in answer.references:
            print_line(reference_line(each), flush=True)
    return is_yes


def _line(document_id: str, answer: CheckAnswer) -> str:
    kind = answer.relation or ("unique" if answer.verdict == "none" else answer.verdict)
    of = f" ~ {printable(answer.match.id)}" if answer.match else ""
    return with_details(f"{kind:<{KIND_COLUMNS}} {printable(document_id)}{of}", _details(answer))


def _details(answer: CheckAnswer) -> Iterator[str]:
    if answer.resemblance is not None:
        yield f", resemblance {answer.resemblance:.2f}"
        yield f" ({answer.low:.2f}-{answer.high:.2f})"
    if answer.size:
        yield f", family of {answer.size}"
    if answer.distance is not None:
        yield f", distance {answer.distance}"
    for reason in answer.low_confidence:
        yield f", {escaped(reason)}"


class NewParts(msgspec.Struct, frozen=True):
    """What is new in a document, with the text of each new part in the order of the document."""

    id: str
    characters: int
    novel: Amount
    redundant: bool
    parts: tuple[dict[str, int | str], ...]
    sources: tuple[SourceRef, ...]


def new_parts(signed: "Signed", answer: CheckAnswer, found: "Novelty") -> NewParts:
    """Return what is new in a document."""
    text = signed.text
    return NewParts(
        signed.signature.id,
        len(text),
        found.novel,
        answer.redundant,
        tuple({"start": start, "end": end, "text": text[start:end]} for start, end in sorted(found.novel_spans)),
        found.sources,
    )


def part_lines(report: NewParts) -> Iterator[str]:
    """Yield one line about a document and one line for each new part."""
    known = ", ".join(escaped(source.id) for source in report.sources)
    yield f"{escaped(report.id)}: +{report.novel.value} new" + (f", the rest is in {known}" if known else "")
    for part in report.parts:
        text = str(part["text"])
        yield f"  {part['start']}-{part['end']}  {escaped(text, len(text))}"
