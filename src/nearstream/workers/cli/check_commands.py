"""Ask the index about documents or signatures: what they are, and what is new in them."""

import argparse
import asyncio
from collections.abc import Iterator
from contextlib import aclosing
from typing import Any

import msgspec

from nearstream.schemas.checks.check import CheckAnswer
from nearstream.workers.cli.event_lines import reference_line
from nearstream.workers.cli.fitting import COLUMNS, KIND_COLUMNS, cut, sentence, with_details
from nearstream.workers.config.exit_codes import Exit
from nearstream.workers.config.settings import Settings
from nearstream.workers.files.source import Refused
from nearstream.workers.operations.check import Checked, check_signatures
from nearstream.workers.operations.signatures import Signed, read_signatures, sign_files
from nearstream.workers.operations.terminal import (
    PATH_CHARACTERS,
    columns,
    escaped,
    print_json,
    print_line,
    print_message,
)
from nearstream.workers.pipeline.deployment import Deployment


def check_documents(settings: Settings, options: argparse.Namespace) -> Exit:
    """Print how documents relate to those in the index, or only whether they do."""
    if bool(options.paths) == bool(options.signature):
        print_message("nearstream check: files expected, or --signature with a file of signatures")
        return Exit.USAGE
    deployment = Deployment.of(settings)

    def questions() -> Iterator[Signed | Refused]:
        if options.signature:
            return read_signatures(deployment.scheme, [options.signature])
        return sign_files(deployment, options.paths)

    async def run() -> Exit:
        outcomes = set()
        async with aclosing(check_signatures(deployment, questions(), options.timeout, options.against)) as answers:
            async for item in answers:
                if isinstance(item, Refused):
                    _refuse(item)
                    outcomes.add(Exit.UNREADABLE)
                    continue
                _show(item, options)
                outcomes.add(Exit.OK if item.answer.match or item.answer.references else Exit.NO)
        return _worst(outcomes)

    return asyncio.run(run())


def _worst(outcomes: set[Exit]) -> Exit:
    """Return the exit code of the command: something was unreadable, something was related, or nothing was."""
    return next((each for each in (Exit.UNREADABLE, Exit.OK) if each in outcomes), Exit.NO)


def _refuse(item: Refused) -> None:
    print_message(f"refused {escaped(item.source, PATH_CHARACTERS)}: {item.reason}")


def _show(checked: Checked, options: argparse.Namespace) -> None:
    if options.bare:
        print_line("yes" if checked.answer.match or checked.answer.references else "no", flush=True)
    elif options.json:
        fields = msgspec.structs.asdict(checked.answer)
        answered = {
            name: fields[name] for name in fields if name not in ("degraded", "reason", "learned", "learn_reason")
        }
        print_json({"id": checked.document_id, **answered}, flush=True)
    else:
        print_line(_line(checked.document_id, checked.answer), flush=True)
        for each in checked.answer.references:
            print_line(reference_line(each), flush=True)


def _line(document_id: str, answer: CheckAnswer) -> str:
    """Return the answer as a line: relation, document, counterpart, and the details that fit."""
    kind = answer.relation or ("unique" if answer.verdict == "none" else answer.verdict)
    start = f"{kind:<{KIND_COLUMNS}} "
    if answer.match is None:
        text = start + cut(document_id, COLUMNS - columns(start))
    else:
        text = sentence(start, document_id, "~", answer.match.id)
    return with_details(text, list(_details(answer)))


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


def show_new_parts(settings: Settings, options: argparse.Namespace) -> Exit:
    """Print what is new in the documents of files, against the index, without adding them."""
    deployment = Deployment.of(settings)

    async def run() -> Exit:
        outcomes = set()
        signed = sign_files(deployment, options.paths)
        async with aclosing(check_signatures(deployment, signed, options.timeout, options.against)) as answers:
            async for item in answers:
                if isinstance(item, Refused):
                    print_message(f"refused {escaped(item.source, PATH_CHARACTERS)}: {item.reason}")
                    outcomes.add(Exit.UNREADABLE)
                    continue
                told = new_parts(item)
                outcomes.add(Exit.OK if told["parts"] else Exit.NO)
                if options.json:
                    print_json(told, flush=True)
                else:
                    for line in part_lines(told):
                        print_line(line, flush=True)
        return next((each for each in (Exit.UNREADABLE, Exit.OK) if each in outcomes), Exit.NO)

    return asyncio.run(run())


def new_parts(checked: Checked) -> dict[str, Any]:
    """Return the novelty of a document with the text of each new part, in the order of the document.

    Under a preset without LD signatures all is new that is no equal text.
    """
    found, text = checked.novelty, checked.text
    spans = found.novel_spans if found else () if checked.answer.redundant else ((0, len(text)),)
    return {
        "id": checked.document_id,
        "characters": len(text),
        "novel": found and found.novel,
        "redundant": checked.answer.redundant,
        "parts": [{"start": start, "end": end, "text": text[start:end]} for start, end in sorted(spans)],
        "sources": found.sources if found else (),
    }


def part_lines(told: dict[str, Any]) -> Iterator[str]:
    """Yield one line about a document and one line for each new part."""
    amount = f"+{told['novel'].value} new" if told["novel"] else "new" if told["parts"] else "known"
    known = ", ".join(escaped(source.id) for source in told["sources"])
    yield f"{escaped(told['id'])}: {amount}" + (f", the rest is in {known}" if known else "")
    for part in told["parts"]:
        yield f"  {part['start']}-{part['end']}  {escaped(part['text'], len(part['text']))}"
