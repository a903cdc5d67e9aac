"""Measure how often what is said of documents is what a person says of them.

    python -m benchmarks.judgement [--corpus DIR] [--case N ...] [--pairs N] [--seed N] [--scheme S]
                                   [--through memory|redis] [--json]

Each case is a stream of documents made of real text, which are signed and matched with the default settings.
Prints a table with the share of the answers that a person calls right, and the events about other pairs. The exit code
is 2 when an input cannot be read. Uses no network.
"""

import argparse
import asyncio
import json
import random
import sys
from collections.abc import Sequence
from operator import attrgetter

from benchmarks.judgement import edited, framed, mails, passages, written
from benchmarks.judgement.answers import rows, table
from benchmarks.judgement.cases import Material
from benchmarks.speed.measure import positive
from benchmarks.storing import add_option, through
from benchmarks.stream.prose import Prose, options_and_sources
from nearstream.streams.signing.scheme import DEFAULT_LABEL, LABELS

CASES = sorted((*framed.CASES, *edited.CASES, *mails.CASES, *passages.CASES, *written.CASES), key=attrgetter("number"))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return 0."""
    numbers = sorted({case.number for case in CASES})
    parser = argparse.ArgumentParser(prog="python -m benchmarks.judgement", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--case", type=int, nargs="+", choices=numbers, metavar="N", help="only these cases")
    parser.add_argument("--pairs", type=positive, default=60, metavar="N", help="pairs of each case (default 60)")
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="seed of the documents (default 1)")
    parser.add_argument("--scheme", choices=LABELS, default=DEFAULT_LABEL, help="preset that signs")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    add_option(parser)
    options, texts = options_and_sources(parser, arguments)
    found = []
    with through(options.through):
        for case in CASES:
            if options.case is None or case.number in options.case:
                draw = random.Random(f"{options.seed} {case.name}")
                material = Material(Prose(texts, options.seed), draw, options.pairs)
                found += asyncio.run(rows(case, material, options.scheme))
    print(json.dumps(found, indent=1) if options.json else table(found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
