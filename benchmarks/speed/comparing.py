"""Measure what it costs to compare an arriving document with its candidates.

    python -m benchmarks.speed.comparing --corpus DIR [--documents N] [--least N] [--repeats N]

The documents arrive one by one at an index in memory, in which their candidates are looked up. The candidates are then
compared from their packed records, as Redis answers them: alone, and as the matcher does it, which also applies the
rules of families and of common text. Times are CPU times. Each document
counts with the best of its repetitions, because other work on the machine only adds to them. Prints one JSON object.
The exit code is 2 when the corpus cannot be read.
"""

import argparse
import asyncio
import json
import math
import random
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.entering import enter
from benchmarks.quality.corpus import CorpusError, Text, document, read_texts
from benchmarks.speed.measure import cpu, pin, positive
from nearstream.schemas.documents.signature import Signature
from nearstream.streams.estimates.comparing import compare
from nearstream.streams.estimates.estimate import unpack_estimates
from nearstream.streams.fingerprints.hashing import HashKey
from nearstream.streams.matching.arriving import Arriving
from nearstream.streams.matching.counterpart import Candidate, compare_with
from nearstream.streams.matching.looking_up import look_up_all
from nearstream.streams.relations.rules import decide
from nearstream.streams.relations.thresholds import DEFAULT_THRESHOLDS
from nearstream.streams.relations.verdict import first_rule
from nearstream.streams.signing.scheme import DEFAULT_LABEL, preset
from nearstream.streams.signing.signer import Signer
from nearstream.streams.store.record import Recorded, pack_signature, signature_of, unpack_record
from nearstream.streams.store.store import local_store

_LONGEST = 100_000  # characters


@dataclass(frozen=True)
class Arrived:
    """A document with its candidates."""

    newcomer: Arriving  # the document, as it is compared
    found: Sequence[Candidate]  # what the index says about its candidates
    records: tuple[tuple[bytes, str, bytes, int], ...]  # the arguments of `unpack_record` for each candidate

    def documents(self) -> list[Recorded]:
        """Return the candidates as they are read from the records in an answer of Redis."""
        return [unpack_record(*record) for record in self.records]

    def candidates(self) -> list[Candidate]:
        """Return them with what the index says about them."""
        return [known._replace(earlier=document) for known, document in zip(self.found, self.documents(), strict=True)]


async def arrivals(texts: Iterable[Text], count: int, least: int) -> list[Arrived]:
    """Return the first documents that have at least some candidates when they arrive."""
    key = HashKey.public()
    scheme = preset(DEFAULT_LABEL, key)
    store, signer, found = local_store(), Signer(scheme, key), list[Arrived]()
    for text in texts:
        whole = signer.sign(document(text))
        if not whole.n_bytes:
            continue
        keys = scheme.keys(whole, key)
        newcomer = Arriving(scheme.kept(whole), keys, scheme)
        (near,) = await look_up_all(store, [newcomer])
        candidates = near.candidates
        await enter(store, scheme, key, [whole])
        if len(candidates) >= least:
            records = tuple(_record(signature_of(candidate.earlier)) for candidate in candidates)
            found.append(Arrived(newcomer, candidates, records))
        if len(found) == count:
            break
    return found


def measure(arrived: Sequence[Arrived], repeats: int) -> dict[str, Any]:
    """Return the microseconds of CPU of a comparison in each way, unpacking included."""

    def relations(each: Arrived) -> list[str]:
        estimates = unpack_estimates(compare(each.newcomer.signature, each.documents()))
        return [first_rule(decide(numbers, DEFAULT_THRESHOLDS), numbers).relation for numbers in estimates]

    found = Counter(relation for each in arrived for relation in relations(each))
    comparisons = found.total()
    in_c = best_us(relations, arrived, repeats) / comparisons
    in_matcher = best_us(lambda each: compare_with(each.newcomer, each.candidates()), arrived, repeats)
    return {
        "processor": cpu(),
        "documents": len(arrived),
        "candidates_a_document": round(comparisons / len(arrived), 1),
        "relations": dict(found.most_common()),
        "unpack_us": round(best_us(Arrived.documents, arrived, repeats) / comparisons, 1),
        "c_us": round(in_c, 1),
        "matcher_us": round(in_matcher / comparisons, 1),
        "n": repeats,
    }


def best_us(run: Callable[[Arrived], object], arrived: Sequence[Arrived], repeats: int) -> float:
    """Return the microseconds of CPU of all documents, each in its best repetition."""
    best = [math.inf] * len(arrived)
    for _ in range(repeats):
        for place, each in enumerate(arrived):
            start = time.thread_time_ns()
            run(each)
            best[place] = min(best[place], (time.thread_time_ns() - start) / 1_000)
    return sum(best)


def main() -> int:
    """Print one JSON object and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpus", type=Path, required=True)
    parser.add_argument("--documents", type=positive, default=200, help="documents whose comparisons are timed")
    parser.add_argument("--least", type=positive, default=10, help="candidates that these have at least")
    parser.add_argument("--repeats", type=positive, default=20, help="repetitions, of which the best counts")
    chosen = parser.parse_args()
    try:
        texts = [text for text in read_texts(chosen.corpus).values() if len(text.text) <= _LONGEST]
    except CorpusError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    random.Random(1).shuffle(texts)
    arrived = asyncio.run(arrivals(texts, chosen.documents, chosen.least))
    pin()
    sys.stdout.write(json.dumps(measure(arrived, chosen.repeats), indent=2) + "\n")
    return 0


def _record(signature: Signature) -> tuple[bytes, str, bytes, int]:
    packed = pack_signature(signature)
    return packed, signature.scheme, signature.digest[:8], signature.observed_at_ms


if __name__ == "__main__":
    sys.exit(main())
