"""Measure which related documents an index finds, and what that costs.

    python -m benchmarks.quality.retrieval --corpus DIR [--events OUT.jsonl] [--seed N] [--scheme S]
                                   [--max-characters N] [--why] [--through memory|redis]

The documents arrive one by one. Prints one JSON object, with `--why` also where the pairs of each group were lost. The
exit code is 2 when an input cannot be read. Uses no network and no lineage.
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
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.quality.corpus import CorpusError, Pair, Text, document, read_pairs, read_texts, share, shingles
from benchmarks.quality.recording import Both, Recording, fates, longest_common_run
from benchmarks.quality.scoring import Figures
from benchmarks.quality.strata import LONG_CHARACTERS, strata
from benchmarks.speed.measure import positive
from benchmarks.storing import add_option, new_store, through
from nearstream.schemas.topics.codec import encode_json, encode_signature
from nearstream.schemas.verdicts.events import PairEvent, Retraction, kind_of
from nearstream.streams.fingerprints.hashing import HashKey
from nearstream.streams.matching.matcher import Matcher
from nearstream.streams.signing.scheme import DEFAULT_LABEL, LABELS, preset
from nearstream.streams.signing.signer import Signer
from nearstream.streams.store.limits import IndexLimits
from nearstream.streams.store.store import Store

_ENTRY_BYTES = 13.9  # size of a packed entry in Redis 7.0
_UNRELATED = 0.10
_SETTINGS = ("scheme", "seed", "max_characters")
BEGIN = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Run:
    """The result of one pass over all documents.

    `families` holds the id of the family of each document.
    """

    recording: Recording
    events: dict[Both, PairEvent]
    families: dict[str, str]
    bytes_signed: int
    bytes_kept: int
    full_buckets: int
    seconds: float

    @cached_property
    def families_with_event(self) -> set[Both]:
        """Return the pairs of families between which there is an event, and each family by itself."""
        families = self.families
        return {frozenset(families[name] for name in both) for both in self.events} | {
            frozenset((family,)) for family in families.values()
        }

    def connects(self, pair: Pair) -> bool:
        """Return whether both documents are in one family, or there is an event between their families."""
        return frozenset((self.families.get(pair.a), self.families.get(pair.b))) in self.families_with_event


async def run(texts: Sequence[Text], store: Store, label: str = DEFAULT_LABEL) -> Run:
    """Sign and match the documents in this order."""
    key = HashKey.public()
    scheme = preset(label, key)
    signer, matcher = Signer(scheme, key), Matcher(store, scheme, key)
    recording = Recording.of(matcher)
    events: dict[Both, PairEvent] = {}
    families: dict[str, str] = {}
    signed = kept = 0
    began = time.process_time()
    for number, text in enumerate(texts):
        signature = signer.sign(document(text, BEGIN + timedelta(seconds=number)))
        signed += len(encode_signature(signature))
        kept += len(encode_signature(scheme.kept(signature)))
        if signature.n_bytes:
            matched = await matcher.match(signature)
            pairs = [event for event in matched.events if not isinstance(event, Retraction)]
            events |= {frozenset((event.newer.id, event.older.id)): event for event in pairs}
            families |= {text.id: matched.verdict.family.id} if matched.verdict else {}
    seconds = time.process_time() - began
    return Run(recording, events, families, signed, kept, matcher.counts.full_buckets, seconds)


def recall(pairs: Sequence[Pair], done: Run) -> Figures:
    """Return the recall on labelled related pairs.

    The shares are those of pairs that met, that caused an event, that caused an event of the right kind, and that are
    connected: both documents are in one family, or there is an event between their families.
    """
    together = [frozenset((pair.a, pair.b)) for pair in pairs]
    events = [(pair, done.events.get(both)) for pair, both in zip(pairs, together, strict=True)]
    return {
        "n": len(pairs),
        "candidate": share(sum(both in done.recording.met for both in together), len(pairs)),
        "event": share(sum(event is not None for _, event in events), len(pairs)),
        "right_relation": share(
            sum(event is not None and kind_of(event) == pair.relation for pair, event in events), len(pairs)
        ),
        "connected": share(sum(map(done.connects, pairs)), len(pairs)),
    }


def why(groups: Mapping[str, Sequence[Pair]], texts: Mapping[str, Text], done: Run) -> Figures:
    """Return where the pairs of each group were lost, and those that nothing connects.

    For pairs without a common key also the length of their longest common passage, in words.
    """
    ends = {group: fates((end(pair, done), pair.clear) for pair in pairs) for group, pairs in groups.items()}
    keyless = [pair for pair in {*groups["all"], *groups["short"]} if end(pair, done) == "no_key"]
    runs = sorted(longest_common_run(texts[pair.a].text, texts[pair.b].text) for pair in keyless)
    longest = {"median": runs[len(runs) // 2], "most": runs[-1]} if runs else {}
    apart = [pair for pair in {*groups["all"], *groups["short"]} if not done.connects(pair)]
    not_connected = fates((end(pair, done), pair.clear) for pair in apart)
    return {"fates": ends, "not_connected": not_connected, "longest_common_run_without_key": longest}


def end(pair: Pair, done: Run) -> str:
    """Return how far a related pair came.

    It was lost in the index, met without an event, got an event of another relation, or got the right one.
    """
    both = frozenset((pair.a, pair.b))
    event = done.events.get(both)
    if event is None:
        fate = done.recording.fate(both)
        return "no_event" if fate == "met" else fate
    return "right" if kind_of(event) == pair.relation else "other_relation"


def false_meetings(met: Iterable[Both], texts: Mapping[str, NDArray[np.int64]]) -> int:
    """Count the pairs that met although they have little in common.

    Little means that less than a tenth of the shingles of either text are in the other.
    """
    count = 0
    for a, b in met:
        one, other = texts[a], texts[b]
        common = np.intersect1d(one, other, assume_unique=True).size
        count += common < _UNRELATED * max(min(one.size, other.size), 1)
    return count


def report(pairs: Sequence[Pair], texts: Mapping[str, Text], options: argparse.Namespace) -> tuple[Run, Figures]:
    """Return the run and all figures for one order of arrival."""
    arriving = [text for text in texts.values() if len(text.text) <= options.max_characters]
    random.Random(options.seed).shuffle(arriving)
    store = new_store(preset(options.scheme, HashKey.public()), IndexLimits(retention_seconds=0))
    done = asyncio.run(run(arriving, store, options.scheme))
    sets = {text.id: shingles(text.text) for text in arriving}
    known = [pair for pair in pairs if pair.a in sets and pair.b in sets]
    n, groups, recording = max(len(arriving), 1), strata(known, sets), done.recording
    figures = {
        "documents": len(arriving),
        "skipped": len(texts) - len(arriving),
        "settings": {name: getattr(options, name) for name in _SETTINGS},
        "strata": {name: recall(each, done) for name, each in groups.items()},
        "per_document": {
            "looked_up": round(recording.looked_up / n, 2),
            "verified": round(len(recording.met) / n, 2),
            "false": round(false_meetings(recording.met, sets) / n, 2),
            "index_entries": round(recording.entries / n, 1),
            "entry_bytes": round(_ENTRY_BYTES * recording.entries / n),
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
    """Run the command and return its exit code.

    0 means that everything was measured, 2 that an input is unreadable.
    """
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--corpus", type=Path, required=True, help="directory with docs.jsonl.gz and pairs.jsonl.gz")
    parser.add_argument("--events", type=Path, help="write each event as a JSON line to this file")
    parser.add_argument("--scheme", choices=LABELS, default=DEFAULT_LABEL)
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="seed of the order of arrival (default 1)")
    parser.add_argument(
        "--max-characters",
        type=positive,
        default=LONG_CHARACTERS,
        metavar="N",
        help="skip longer texts (default 100000)",
    )
    parser.add_argument("--why", action="store_true", help="also print where related pairs were lost")
    add_option(parser)
    options = parser.parse_args(arguments)
    try:
        pairs, texts = read_pairs(options.corpus), read_texts(options.corpus)
    except CorpusError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    with through(options.through):
        done, figures = report(pairs, texts, options)
    if options.events:
        options.events.write_bytes(b"".join(encode_json(event) + b"\n" for event in done.events.values()))
    print(json.dumps(figures, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
