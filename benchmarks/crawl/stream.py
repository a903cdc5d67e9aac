"""Measure what extraction costs the `crawl` stream: equal pages as HTML, and as the text that was extracted before.

    python -m benchmarks.crawl.stream [--documents N] [--rounds N] [--seed N]

Starts its own Kafka and Redis. A worker reads each form of the stream in turn, in several rounds. `html` are pages of
about 60 KB. `main` is the text that a worker finds in them, and `all` all of their text, each sent as text. Prints one
JSON object with documents a second, and the ratio of `html` to the others in each round.
"""

import argparse
import asyncio
import json
import logging
import math
import statistics
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from benchmarks.speed.measure import positive
from benchmarks.stream.figures import OURS
from benchmarks.stream.measuring import Run, machine, measured, servers
from benchmarks.stream.prose import Prose, sources
from benchmarks.stream.texts import Record, crawl
from nearstream.workers.crawl.page import ALL, MAIN, PageReader

_LINKS = 250  # in the navigation of a page
_STYLE = f"<style>{'.a{color:red}' * 300}</style><script>{'var a = 1;' * 2_000}</script>"


def as_html(record: Record) -> Record:
    """Return a document of the stream as the page that it was, with its frame in elements."""
    head, *article, foot = record.text.split("\n\n")
    words = head.split()
    links = "".join(
        f"<li class='nav-item'><a href='/topic/{number}'>{words[number % len(words)]} {number}</a></li>"
        for number in range(_LINKS)
    )
    body = "".join(f"<p>{_escaped(paragraph)}</p>" for paragraph in article)
    page = (
        f"<!doctype html><html><head><title>Page</title>{_STYLE}</head><body><nav><p>{_escaped(head)}</p><ul>{links}"
        f"</ul></nav><main><article>{body}</article></main><footer><p>{_escaped(foot)}</p><ul>{links}</ul></footer>"
        "</body></html>"
    )
    return replace(record, text=page, content="html")


def as_text(pages: Sequence[Record], content: str) -> list[Record]:
    """Return pages as the text that a worker would find in them."""
    reader = PageReader(content)
    try:
        return [replace(page, text=reader.read(page.text).text, content="text") for page in pages]
    finally:
        reader.close()


def measure(forms: dict[str, list[Record]], rounds: int, folder: Path) -> dict[str, list[float]]:
    """Return the documents a second of each form in each round."""
    found: dict[str, list[float]] = {name: [] for name in forms}
    with servers(folder) as started:
        for _ in range(rounds):
            for name, records in forms.items():
                figures = asyncio.run(measured(started, OURS, records, Run(1, math.inf)))
                found[name].append(figures["documents_per_second"])
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Print one JSON object."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--documents", type=positive, default=2_000, metavar="N")
    parser.add_argument("--rounds", type=positive, default=3, metavar="N")
    parser.add_argument("--seed", type=int, default=1, metavar="N")
    options = parser.parse_args(arguments)
    logging.getLogger("aiokafka").setLevel(logging.CRITICAL)  # a topic that was just made has no leader for a moment
    html = [as_html(record) for record in crawl(Prose(sources(None), options.seed), options.documents, options.seed)]
    forms = {"html": html, MAIN: as_text(html, MAIN), ALL: as_text(html, ALL)}
    with tempfile.TemporaryDirectory() as folder:
        found = measure(forms, options.rounds, Path(folder))
    ratios = {
        name: [round(ours / other, 3) for ours, other in zip(found["html"], found[name], strict=True)]
        for name in (MAIN, ALL)
    }
    report = {
        "documents": options.documents,
        "kilobytes": {name: _kilobytes(records) for name, records in forms.items()},
        "documents_per_second": found,
        "html_to": ratios,
        "html_to_median": {name: round(statistics.median(each), 3) for name, each in ratios.items()},
        "machine": machine(),
    }
    print(json.dumps(report))
    return 0


def _kilobytes(records: Sequence[Record]) -> float:
    return round(sum(len(record.text) for record in records) / len(records) / 1_000, 1)


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;")


if __name__ == "__main__":
    raise SystemExit(main())
