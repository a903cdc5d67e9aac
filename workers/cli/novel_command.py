"""Print the parts of documents that no document of the index has."""

import argparse
import asyncio
from collections.abc import Iterator
from contextlib import aclosing
from typing import Any

from nearstream.workers.config.exit_codes import Exit
from nearstream.workers.config.settings import Settings
from nearstream.workers.operations.check import Checked, check_signatures
from nearstream.workers.operations.signatures import sign_files
from nearstream.workers.operations.terminal import PATH_CHARACTERS, escaped, print_json, print_line, print_message
from nearstream.workers.pipeline.deployment import Deployment
from nearstream.workers.pipeline.file_source import Refused


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
