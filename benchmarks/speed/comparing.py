"""Measure what it costs to compare an arriving document with its candidates.

    python -m benchmarks.speed.comparing --corpus DIR [--documents N] [--repeats N] [--shortest-ms N]

The documents arrive one by one at an index in memory, which names the candidates. The candidates are then compared from
their packed records, as Redis answers them: once with the Python form of comparing, and once as `Settling` compares
them. Prints one JSON object. The exit code is 2 when the corpus cannot be read.
"""

import argparse
import asyncio
import json
import random
import sys
from collections import Counter
from collections.abc import Coroutine, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from benchmarks.quality.corpus import CorpusError, Text, document, read_texts
from benchmarks.speed.measure import Effort, cpu, effort_options, pin, positive, timed
from nearstream.schemas.signature import Signature
from nearstream.streams.case import Case
from nearstream.streams.estimates.comparing import compare_numpy
from nearstream.streams.fingerprints.hashing import HashKey
from nearstream.streams.index.candidate import Candidate
from nearstream.streams.index.contract import Admission, Admitted, IndexLimits
from nearstream.streams.index.memory import MemoryIndex
from nearstream.streams.matcher import SENT_BY_DEFAULT
from nearstream.streams.relations.thresholds import DEFAULT_THRESHOLDS
from nearstream.streams.relations.verdict import relate
from nearstream.streams.settling import Settling
from nearstream.streams.signing.scheme import DEFAULT_LABEL, preset
from nearstream.streams.signing.signer import Signer
from nearstream.workers.redis_index.record import Recorded, pack_signature, unpack_record

_LONGEST = 100_000  # characters
_LEAST_CANDIDATES = 10


@dataclass(frozen=True)
class Arrived:
    """A document with its candidates.

    Attributes:
        admission: How it was admitted.
        answer: The answer of the index.
        records: The packed signatures of the candidates.
    """

    admission: Admission
    answer: Admitted
    records: tuple[bytes, ...]

    def candidates(self, signature: Signature) -> list[Candidate]:
        """Return the candidates of a document as the worker makes them of an answer of Redis."""
        return [
            replace(candidate, earlier=_unpacked(record, signature.scheme, candidate.signature))
            for candidate, record in zip(self.answer.candidates, self.records, strict=True)
        ]


async def arrivals(texts: Iterable[Text], count: int) -> list[Arrived]:
    """Return documents that have at least ten candidates when they arrive."""
    key = HashKey.public()
    scheme = preset(DEFAULT_LABEL, key)
    index, signer, found = MemoryIndex(IndexLimits()), Signer(scheme, key), list[Arrived]()
    for text in texts:
        whole = signer.sign(document(text))
        if not whole.n_bytes:
            continue
        admission = Admission(whole.document_key, scheme.kept(whole), scheme.keys(whole, key))
        (answer,) = await index.admit([admission])
        if len(answer.candidates) >= _LEAST_CANDIDATES:
            records = tuple(pack_signature(each.signature, observed_in_head=True) for each in answer.candidates)
            found.append(Arrived(admission, answer, records))
        if len(found) == count:
            break
    return found


def measure(arrived: Sequence[Arrived], effort: Effort) -> dict[str, Any]:
    """Return the microseconds of a comparison in both ways, unpacking included."""
    settling = Settling(MemoryIndex(IndexLimits()), DEFAULT_THRESHOLDS, SENT_BY_DEFAULT)
    relations: Counter[str] = Counter()

    def in_python(each: Arrived) -> None:
        arriving = _signature(each)
        candidates = each.candidates(arriving)
        estimates = compare_numpy(arriving, [candidate.earlier for candidate in candidates])
        for candidate, numbers in zip(candidates, estimates, strict=True):
            verdict = relate(arriving, candidate.signature, numbers)
            relations[verdict.relation] += 1

    def as_settled(each: Arrived) -> None:
        arriving = _signature(each)
        _finish(settling.compare_all(Case(arriving, each.admission, each.answer), each.candidates(arriving), _no_pause))

    for each in arrived:
        in_python(each)
    found = dict(relations.most_common())
    comparisons = sum(found.values())
    python, native = timed(in_python, arrived, effort), timed(as_settled, arrived, effort)
    a_comparison = len(arrived) / comparisons
    return {
        "processor": cpu(),
        "documents": len(arrived),
        "candidates_a_document": round(comparisons / len(arrived), 1),
        "relations": found,
        "python_us": round(python.us * a_comparison, 1),
        "native_us": round(native.us * a_comparison, 1),
        "python / native": round(python.us / native.us, 1),
        "n": native.n,
        "spread": round(max(python.spread, native.spread), 4),
    }


def main() -> int:
    """Print one JSON object and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpus", type=Path, required=True)
    parser.add_argument("--documents", type=positive, default=200, help="documents whose comparisons are timed")
    effort_options(parser)
    chosen = parser.parse_args()
    try:
        texts = [text for text in read_texts(chosen.corpus).values() if len(text.text) <= _LONGEST]
    except CorpusError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    random.Random(1).shuffle(texts)
    arrived = asyncio.run(arrivals(texts, chosen.documents))
    pin()
    sys.stdout.write(json.dumps(measure(arrived, Effort.of(chosen)), indent=2) + "\n")
    return 0


def _signature(arrived: Arrived) -> Signature:
    if arrived.admission.signature is None:
        raise ValueError("an admission with a signature expected")
    return arrived.admission.signature


def _unpacked(record: bytes, scheme: str, known: Signature) -> Recorded:
    return unpack_record(record, scheme, known.digest[:8], known.observed_at_ms)


def _finish(work: Coroutine[None, None, None]) -> None:
    """Run a coroutine that never waits."""
    with suppress(StopIteration):
        work.send(None)


async def _no_pause() -> None:
    """Continue at once."""


if __name__ == "__main__":
    sys.exit(main())
