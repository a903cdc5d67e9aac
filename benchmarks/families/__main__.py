"""Measure what verdicts and families give, each figure with its goal.

    python -m benchmarks.families [--documents N] [--copies N] [--through memory|redis] [--json]
    python -m benchmarks.families --corpus DIR [--seeds N ...] [--most N] [--through memory|redis] [--json]

The first form makes its own texts and starts its own Redis: equal texts, campaigns of mails, histories of files, bytes
and commands of copies. The second one matches labelled documents in several random orders.
Nothing is compared with a gate: a missed goal is marked. The exit code is 2 when an input cannot be read.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.families import labelled, stored, storms
from benchmarks.families.goals import goals_of_corpus, goals_of_storms
from benchmarks.quality.corpus import CorpusError, read_pairs, read_texts
from benchmarks.quality.scoring import Figures
from benchmarks.speed.measure import positive
from benchmarks.storing import add_option, through


def of_storms(documents: int, copies: int) -> Figures:
    """Return the figures of generated texts."""
    figures: Figures = {"equal_texts": storms.equal_texts(), "histories": storms.histories()}
    log_progress("storms done")
    figures["campaigns"] = stored.campaigns(documents)
    log_progress("campaigns done")
    figures["stored"] = stored.copies(copies)
    return {"goals": goals_of_storms(figures), **figures}


def of_corpus(corpus: Path, seeds: Sequence[int], most: int) -> Figures:
    """Return the figures of labelled documents.

    Raises:
        CorpusError: A file of the corpus is missing or invalid.
    """
    documents = labelled.Labelled.of(read_texts(corpus), read_pairs(corpus), most)
    figures = labelled.figures(documents, seeds)
    log_progress("orders done")
    return {"goals": goals_of_corpus(figures), **figures}


def log_progress(line: str) -> None:
    """Write a line of progress to stderr, because stdout is for JSON."""
    sys.stderr.write(f"{line}\n")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code.

    0 means that everything was measured, 2 that an input is unreadable.
    """
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--documents", type=positive, default=10_000, metavar="N", help="mails of a campaign")
    parser.add_argument("--copies", type=positive, default=1_500, metavar="N", help="copies whose cost is measured")
    parser.add_argument("--corpus", type=Path, help="directory with docs.jsonl.gz and pairs.jsonl.gz")
    parser.add_argument("--seeds", type=int, nargs="+", default=(1, 2, 3), metavar="N", help="seeds of the orders")
    parser.add_argument("--most", type=positive, default=1_000_000, metavar="N", help="most documents of the corpus")
    parser.add_argument("--json", action="store_true", help="print the JSON object on one line")
    add_option(parser)
    options = parser.parse_args(arguments)
    try:
        with through(options.through):
            if options.corpus:
                figures = of_corpus(options.corpus, options.seeds, options.most)
            else:
                figures = of_storms(options.documents, options.copies)
    except CorpusError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    print(json.dumps(figures, indent=None if options.json else 1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
