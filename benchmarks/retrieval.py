"""Which related documents an index brings together when they arrive one by one, and what that costs.

    python -m benchmarks.retrieval --corpus DIR [--events OUT.jsonl] [--seed N] [--bucket-cap N] [--candidates N]
                                   [--scheme S] [--max-characters N] [--why]

Prints one JSON object, with `--why` also where the pairs of each group were lost; exit code 2 when an input cannot be
read. No network, no service, no lineage.
"""

import argparse
import asyncio
import json
import random
import sys
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.corpus import CorpusError, Pair, Text, document, read_pairs, read_texts, share, shingles
from benchmarks.measure import positive
from benchmarks.recording import Both, Recording, fates, longest_common_run
from benchmarks.scoring import Figures
from benchmarks.strata import LONG_CHARACTERS, strata
from schemas.codec import encode_event, encode_signature
from schemas.events import Event, Retraction, kind_of
from streams.hashing import HashKey
from streams.index import IndexLimits
from streams.matcher import SENT_BY_DEFAULT, Matcher
from streams.memory_index import MemoryIndex
from streams.scheme import DEFAULT_LABEL, LABELS, preset
from streams.signer import Signer

_ENTRY_BYTES = 13.9  # of a packed entry in Redis 7.0
_UNRELATED = 0.10
_SETTINGS = ("scheme", "seed", "bucket_cap", "candidates", "max_characters")
BEGIN = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Run:
    """What one pass over all documents gave."""

    index: Recording
    events: dict[Both, Event]
    bytes_signed: int
    bytes_kept: int
    full_buckets: int
    seconds: float


async def run(texts: Sequence[Text], index: Recording, label: str = DEFAULT_LABEL) -> Run:
    """Documents in this order through signer, matcher and index."""
    key = HashKey.public()
    scheme = preset(label, key)
    signer, matcher = Signer(scheme, key), Matcher(index, scheme, key, relations=SENT_BY_DEFAULT | {"overlap"})
    events: dict[Both, Event] = {}
    signed = kept = 0
    began = time.process_time()
    for number, text in enumerate(texts):
        signature = signer.sign(document(text, BEGIN + timedelta(seconds=number)))
        signed += len(encode_signature(signature))
        kept += len(encode_signature(scheme.kept(signature)))
        for event in await matcher.match(signature) if signature.n_bytes else ():
            if not isinstance(event, Retraction):
                events[frozenset((event.newer.id, event.older.id))] = event
    seconds = time.process_time() - began
    return Run(index, events, signed, kept, matcher.counts.full_buckets, seconds)


def recall(pairs: Sequence[Pair], done: Run) -> Figures:
    """Of labelled related pairs: the share that met, that made an event, that made the right one."""
    together = [frozenset((pair.a, pair.b)) for pair in pairs]
    events = [(pair, done.events.get(both)) for pair, both in zip(pairs, together, strict=True)]
    return {
        "n": len(pairs),
        "candidate": share(sum(both in done.index.met for both in together), len(pairs)),
        "event": share(sum(event is not None for _, event in events), len(pairs)),
        "right_relation": share(
            sum(event is not None and kind_of(event) == pair.relation for pair, event in events), len(pairs)
        ),
    }


def why(groups: Mapping[str, Sequence[Pair]], texts: Mapping[str, Text], done: Run) -> Figures:
    """Where the pairs of each group ended; the longest passage of those without a common key, in words."""
    ends = {group: fates((end(pair, done), pair.clear) for pair in pairs) for group, pairs in groups.items()}
    keyless = [pair for pair in {*groups["all"], *groups["short"]} if end(pair, done) == "no_key"]
    runs = sorted(longest_common_run(texts[pair.a].text, texts[pair.b].text) for pair in keyless)
    longest = {"median": runs[len(runs) // 2], "most": runs[-1]} if runs else {}
    return {"fates": ends, "longest_common_run_without_key": longest}


def end(pair: Pair, done: Run) -> str:
    """How far a related pair came: lost on the way, met without an event, told as another relation, or right."""
    both = frozenset((pair.a, pair.b))
    event = done.events.get(both)
    if event is None:
        fate = done.index.fate(both)
        return "no_event" if fate == "met" else fate
    return "right" if kind_of(event) == pair.relation else "other_relation"


def false_meetings(met: Iterable[Both], texts: Mapping[str, NDArray[np.int64]]) -> int:
    """Pairs that met although less than a tenth of either one's shingles lies in the other."""
    count = 0
    for a, b in met:
        one, other = texts[a], texts[b]
        common = np.intersect1d(one, other, assume_unique=True).size
        count += common < _UNRELATED * max(min(one.size, other.size), 1)
    return count


def report(pairs: Sequence[Pair], texts: Mapping[str, Text], options: argparse.Namespace) -> tuple[Run, Figures]:
    """All that the command prints about one order of arrival."""
    arriving = [text for text in texts.values() if len(text.text) <= options.max_characters]
    random.Random(options.seed).shuffle(arriving)
    limits = IndexLimits(options.bucket_cap, options.candidates, retention_seconds=0)
    done = asyncio.run(run(arriving, Recording(MemoryIndex(limits), options.candidates), options.scheme))
    sets = {text.id: shingles(text.text) for text in arriving}
    known = [pair for pair in pairs if pair.a in sets and pair.b in sets]
    n, index, groups = max(len(arriving), 1), done.index, strata(known, sets)
    figures = {
        "documents": len(arriving),
        "skipped": len(texts) - len(arriving),
        "settings": {name: getattr(options, name) for name in _SETTINGS},
        "strata": {name: recall(each, done) for name, each in groups.items()},
        "per_document": {
            "looked_up": round(index.looked_up / n, 2),
            "verified": round(len(index.met) / n, 2),
            "false": round(false_meetings(index.met, sets) / n, 2),
            "index_entries": round(index.entries / n, 1),
            "entry_bytes": round(_ENTRY_BYTES * index.entries / n),
            "signature_bytes": round(done.bytes_signed / n),
            "kept_bytes": round(done.bytes_kept / n),
            "full_buckets": round(done.full_buckets / n, 2),
        },
        "full_buckets": done.full_buckets,
        "events": dict(Counter(map(kind_of, done.events.values())).most_common()),
        "seconds": round(done.seconds, 1),
    }
    return done, figures | ({"why": why(groups, texts, done)} if options.why else {})


def main(arguments: Sequence[str] | None = None) -> int:
    """Command line; 0 when measured, 2 when an input is unreadable."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--corpus", type=Path, required=True, help="holds docs.jsonl.gz and pairs.jsonl.gz")
    parser.add_argument("--events", type=Path, help="write the events, one JSON line each")
    parser.add_argument("--scheme", choices=LABELS, default=DEFAULT_LABEL)
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="order of arrival (default 1)")
    parser.add_argument("--bucket-cap", type=positive, default=100, metavar="N", help="entries of an anchor bucket")
    parser.add_argument(
        "--candidates", type=positive, default=60, metavar="N", help="earlier documents answered for one"
    )
    parser.add_argument(
        "--max-characters", type=positive, default=LONG_CHARACTERS, metavar="N", help="leave out longer texts (100000)"
    )
    parser.add_argument("--why", action="store_true", help="also tell where related pairs were lost")
    options = parser.parse_args(arguments)
    try:
        pairs, texts = read_pairs(options.corpus), read_texts(options.corpus)
    except CorpusError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    done, figures = report(pairs, texts, options)
    if options.events:
        options.events.write_bytes(b"".join(encode_event(event) + b"\n" for event in done.events.values()))
    print(json.dumps(figures, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
