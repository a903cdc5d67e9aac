"""Measure how far the events depend on the order of arrival.

    python -m benchmarks.quality.order --corpus DIR [--documents N] [--seed N]

Matches one set of documents in two orders. Compares the event ids, and counts the pairs with an event in one order that
the other one does not connect, by an event or through families. The times of the documents do not change, so each pair
that is compared gets an equal event both times. Prints one JSON object. The exit code is 2 when an input cannot be
read. Uses no network and no service.
"""

import argparse
import asyncio
import json
import random
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.families.feeding import KEY, SCHEME, Fed, feed
from benchmarks.quality.corpus import CorpusError, document, read_texts
from benchmarks.quality.scoring import Figures
from benchmarks.speed.measure import positive
from nearstream.schemas.documents.signature import Signature
from nearstream.streams.signing.signer import Signer
from nearstream.streams.store.limits import IndexLimits
from nearstream.streams.store.local import local_store


def figures(signatures: list[Signature], seed: int) -> Figures:
    """Return all figures that the command prints."""
    first = _fed(signatures)
    random.Random(seed).shuffle(signatures)
    second = _fed(signatures)
    one, other = ({event.event_id for event in fed.events} for fed in (first, second))
    return {
        "documents": len(signatures),
        "events": [len(one), len(other)],
        "only_in_one": [len(one - other), len(other - one)],
        "pairs": len(first.paired | second.paired),
        "connected_in_one": [_unconnected(first, second), _unconnected(second, first)],
        "full_buckets": [first.full_buckets, second.full_buckets],
        "documents_cut": [first.cut, second.cut],
    }


def _fed(signatures: Sequence[Signature]) -> Fed:
    return asyncio.run(feed(signatures, local_store(IndexLimits(retention_seconds=0))))


def _unconnected(one: Fed, other: Fed) -> int:
    """Count the pairs with an event in one order that the other order does not connect."""
    return sum(not other.connects(*both) for both in one.paired)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code.

    0 means that everything was measured, 2 that an input is unreadable.
    """
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--corpus", type=Path, required=True, help="directory with docs.jsonl.gz")
    parser.add_argument(
        "--documents", type=positive, default=1_700, metavar="N", help="number of documents (default 1700)"
    )
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="seed of both orders (default 1)")
    options = parser.parse_args(arguments)
    try:
        texts = list(read_texts(options.corpus).values())
    except CorpusError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    random.Random(options.seed).shuffle(texts)
    signer = Signer(SCHEME, KEY)
    signed = [signer.sign(document(text)) for text in texts[: options.documents]]
    print(json.dumps(figures([each for each in signed if each.n_bytes], options.seed + 1)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
