"""Drop the duplicates of a dataset with several tools, and measure what is lost.

    python -m benchmarks.keeping FILE.jsonl [--max-new 100]

Each tool runs in a process of its own on documents with a `text`, in the order of the file: `scan --keep` of
nearstream, rensa and datasketch (128 slots over 5-word shingles, dropped if the sketch of a kept document resembles by
.8 or more), and equal texts. Lost is the share of all distinct 5-word shingles that no kept document has. Prints one
JSON object, null for a tool that is not installed.
"""

import argparse
import asyncio
import json
import re
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from nearstream.workers.config.settings import load
from nearstream.workers.files.source import read
from nearstream.workers.operations.keeping.choosing import Limit, choose, index_of_kept
from nearstream.workers.pipeline.deployment import Deployment

_WORD = re.compile(r"\w+")
_SLOTS, _RESEMBLANCE, _WORDS = 128, 0.8, 5
Kept = list[bool]
Figures = dict[str, Any]  # Any: JSON
Sketches = Any  # an index of a library without types


def texts(path: Path) -> Iterator[str]:
    """Yield the texts of a file of JSON Lines."""
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            yield json.loads(line)["text"]


def shingles(text: str) -> list[str]:
    """Return the runs of five words of a text, or all of its words if it has fewer."""
    words = _WORD.findall(text.casefold())
    return [" ".join(words[at : at + _WORDS]) for at in range(max(1, len(words) - _WORDS + 1))]


def by_nearstream(path: Path, limit: Limit) -> Kept:
    """Drop what has at most so much new text."""

    async def run() -> Kept:
        deployment = Deployment.of(load({}))
        with index_of_kept(deployment, None, "") as index:
            choices = choose(deployment, index, read([str(path)]), limit)
            return [not choice.is_dropped async for choice in choices]

    return asyncio.run(run())


def by_rensa(path: Path, _: Limit) -> Kept:
    """Drop what rensa says resembles a kept document."""
    rensa = import_module("rensa")
    index = rensa.RMinHashLSH(_RESEMBLANCE, _SLOTS, 16)
    return by_sketches(path, index, lambda: rensa.RMinHash(_SLOTS, 42), lambda sketch, words: sketch.update(words))


def by_datasketch(path: Path, _: Limit) -> Kept:
    """Drop what datasketch says resembles a kept document."""
    made = import_module("datasketch")
    update = lambda sketch, words: sketch.update_batch([each.encode() for each in words])  # noqa: E731
    return by_sketches(path, made.MinHashLSH(_RESEMBLANCE, _SLOTS), lambda: made.MinHash(_SLOTS), update)


def by_sketches(path: Path, index: Sketches, new: Callable[[], Any], update: Callable[[Any, list[str]], None]) -> Kept:
    """Drop what resembles a kept document by the sketches of a library."""
    sketches, kept = dict[int, Any](), Kept()
    for number, text in enumerate(texts(path)):
        sketch = new()
        update(sketch, shingles(text))
        kept.append(all(sketches[each].jaccard(sketch) < _RESEMBLANCE for each in index.query(sketch)))
        if kept[-1]:
            index.insert(number, sketch)
            sketches[number] = sketch
    return kept


def by_equal_texts(path: Path, _: Limit) -> Kept:
    """Drop what has the words of a kept document."""
    seen, kept = set[int](), Kept()
    for text in texts(path):
        words = hash(tuple(_WORD.findall(text.casefold())))
        kept.append(words not in seen)
        seen.add(words)
    return kept


TOOLS: dict[str, Callable[[Path, Limit], Kept]] = {
    "nearstream": by_nearstream,
    "rensa": by_rensa,
    "datasketch": by_datasketch,
    "equal texts": by_equal_texts,
}


def run(tool: str, path: Path, limit: Limit) -> Figures:
    """Return what a tool keeps, how long it takes, and how much memory this process needs at most."""
    began = time.process_time()
    kept = TOOLS[tool](path, limit)
    seconds, peak = time.process_time() - began, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return {"kept": kept, "cpu_seconds": round(seconds, 2), "peak_mb": round(peak / 1024)}


def lost(path: Path, kept: Kept) -> float:
    """Return the share of distinct shingles that no kept document has."""
    everywhere, left = set[int](), set[int]()
    for text, is_kept in zip(texts(path), kept, strict=True):
        found = set(map(hash, shingles(text)))
        everywhere |= found
        if is_kept:
            left |= found
    return 1 - len(left) / len(everywhere)


def apart(tool: str, path: Path, max_new: float) -> Figures | None:
    """Run a tool in a process of its own. None: it is not installed."""
    if find_spec(tool) is None and tool != "equal texts":
        return None
    command = [sys.executable, "-m", "benchmarks.keeping", str(path), "--max-new", str(max_new), "--only", tool]
    figures: Figures = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)  # noqa: S603
    return figures


def judged(path: Path, figures: Figures | None) -> Figures | None:
    """Return figures with what was dropped and lost in place of what was kept."""
    if figures is None:
        return None
    kept = figures["kept"]
    return {
        **figures,
        "kept": sum(kept),
        "dropped": kept.count(False),
        "lost_percent": round(100 * lost(path, kept), 3),
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return 0."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("path", type=Path, metavar="FILE.jsonl")
    parser.add_argument("--max-new", type=float, default=100, metavar="N", help="as of `scan --keep` (default 100)")
    parser.add_argument("--only", choices=TOOLS, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.only:
        print(json.dumps(run(options.only, options.path, Limit(options.max_new))))
        return 0
    # All run before this process holds shingles, because a process begins with the peak of the one that started it.
    figures = {tool: apart(tool, options.path, options.max_new) for tool in TOOLS}
    print(json.dumps({tool: judged(options.path, each) for tool, each in figures.items()}, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
