"""Measure how many events of whole runs name the true relation.

    python -m benchmarks.quality.retrieval --corpus DIR --seed N --events FILE         # for several seeds
    python -m benchmarks.quality.confidence --corpus DIR --events FILE... [--most N]

Draws up to N events of each kind from each run and measures their texts exactly. Prints one JSON object. The exit code
is 2 when an input cannot be read.
"""

import argparse
import json
import random
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from benchmarks.quality.corpus import RELATED, CorpusError, Relation, Text, read_texts, share
from benchmarks.quality.labels import Measured, label
from benchmarks.quality.scoring import Figures
from benchmarks.speed.measure import positive
from nearstream.schemas.topics.codec import InvalidMessageError, decode_event
from nearstream.schemas.verdicts.events import PairEvent, Retraction, kind_of
from nearstream.schemas.verdicts.verdict import DocumentVerdict

_NEAR = "near_threshold"


@dataclass(frozen=True)
class Drawn:
    """A drawn event with the exact label of its texts."""

    kind: str
    label: Relation
    is_near: bool

    @property
    def is_right(self) -> bool:
        """Return whether the kind of the event is the true relation."""
        return self.kind == self.label


def drawn(runs: Sequence[Sequence[PairEvent]], texts: Mapping[str, Text], most: int) -> list[Drawn]:
    """Draw and label up to `most` events of each kind and run."""

    @cache
    def measured(name: str) -> Measured:
        return Measured.of(texts[name].text)

    @cache
    def labelled(one: str, other: str) -> Relation:
        return label(measured(one), measured(other))

    chosen = (event for number, events in enumerate(runs) for event in _sample(events, most, number))
    return [
        Drawn(kind_of(event), labelled(*sorted((event.newer.id, event.older.id))), _NEAR in event.low_confidence)
        for event in chosen
    ]


def figures(runs: Sequence[Sequence[PairEvent]], found: Sequence[Drawn]) -> Figures:
    """Return the figures for each kind of event.

    These are the mean number of events in a run, the number drawn, and the shares of drawn events that are right, whose
    texts are related at all, and that are right among the events that were near a threshold, and that were not.
    """
    total, rows = Counter(kind_of(event) for events in runs for event in events), defaultdict(list)
    for each in found:
        rows[each.kind].append(each)
    return {
        kind: {
            "in_a_run": round(total[kind] / len(runs)),
            "drawn": len(each),
            "right": share(sum(row.is_right for row in each), len(each)),
            "related": share(sum(row.label in RELATED for row in each), len(each)),
            "right_near_threshold": _right([row for row in each if row.is_near]),
            "right_without_near_threshold": _right([row for row in each if not row.is_near]),
            "labels": dict(Counter(row.label for row in each).most_common()),
        }
        for kind, each in sorted(rows.items())
    }


def _right(rows: Sequence[Drawn]) -> float | None:
    return share(sum(row.is_right for row in rows), len(rows))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code.

    0 means that everything was measured, 2 that an input is unreadable.
    """
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--corpus", type=Path, required=True, help="directory with docs.jsonl.gz")
    parser.add_argument(
        "--events", type=Path, nargs="+", required=True, help="events written by benchmarks.quality.retrieval"
    )
    parser.add_argument("--most", type=positive, default=1_000, metavar="N", help="events drawn of each kind and run")
    options = parser.parse_args(arguments)
    try:
        texts, runs = read_texts(options.corpus), [_events(path) for path in options.events]
        found = drawn(runs, texts, options.most)
    except (CorpusError, OSError, InvalidMessageError) as error:
        sys.stderr.write(f"{error}\n")
        return 2
    except KeyError as error:
        sys.stderr.write(f"{options.corpus}: no document {error}, which an event names\n")
        return 2
    print(json.dumps(figures(runs, found), indent=1))
    return 0


def _events(path: Path) -> list[PairEvent]:
    events = (decode_event(line) for line in path.read_bytes().splitlines())
    return [event for event in events if not isinstance(event, DocumentVerdict | Retraction)]


def _sample(events: Iterable[PairEvent], most: int, seed: int) -> list[PairEvent]:
    by_kind: defaultdict[str, list[PairEvent]] = defaultdict(list)
    for event in events:
        by_kind[kind_of(event)].append(event)
    chooser = random.Random(seed)
    return [event for _, each in sorted(by_kind.items()) for event in chooser.sample(each, min(most, len(each)))]


if __name__ == "__main__":
    sys.exit(main())
