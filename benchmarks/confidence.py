"""How many events of whole runs tell the relation that their texts have.

    python -m benchmarks.retrieval --corpus DIR --seed N --events FILE         # for some seeds
    python -m benchmarks.confidence --corpus DIR --events FILE... [--most N]

Of each kind and run up to so many events are drawn, their texts measured. Prints one JSON object; exit code 2 when an
input cannot be read.
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

from benchmarks.corpus import RELATED, CorpusError, Relation, Text, read_texts, share
from benchmarks.labels import Measured, label
from benchmarks.measure import positive
from benchmarks.scoring import Figures
from schemas.codec import InvalidMessageError, decode_event
from schemas.events import Containment, ExactDuplicate, NearDuplicate, Overlap, Rearranged, Retraction, Version, kind_of

_NEAR = "near_threshold"

Told = ExactDuplicate | NearDuplicate | Containment | Version | Rearranged | Overlap


@dataclass(frozen=True)
class Drawn:
    """An event with the label of its texts."""

    kind: str
    label: Relation
    is_near: bool

    @property
    def is_right(self) -> bool:
        """Whether the event tells the label."""
        return self.kind == self.label


def drawn(runs: Sequence[Sequence[Told]], texts: Mapping[str, Text], most: int) -> list[Drawn]:
    """Up to `most` events of each kind and run, labelled."""

    @cache
    def measured(name: str) -> Measured:
        return Measured.of(texts[name].text)

    @cache
    def labelled(one: str, other: str) -> Relation:
        return label(measured(one), measured(other))

    chosen = (event for number, events in enumerate(runs) for event in _some(events, most, number))
    return [
        Drawn(kind_of(event), labelled(*sorted((event.newer.id, event.older.id))), _NEAR in event.low_confidence)
        for event in chosen
    ]


def figures(runs: Sequence[Sequence[Told]], found: Sequence[Drawn]) -> Figures:
    """By kind of event: how many in a run, drawn, right, related at all, right where no bound was near."""
    total, rows = Counter(kind_of(event) for events in runs for event in events), defaultdict(list)
    for each in found:
        rows[each.kind].append(each)
    return {
        kind: {
            "in_a_run": round(total[kind] / len(runs)),
            "drawn": len(each),
            "right": share(sum(row.is_right for row in each), len(each)),
            "related": share(sum(row.label in RELATED for row in each), len(each)),
            "right_without_near_threshold": share(
                sum(row.is_right for row in each if not row.is_near), sum(not row.is_near for row in each)
            ),
            "labels": dict(Counter(row.label for row in each).most_common()),
        }
        for kind, each in sorted(rows.items())
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Command line; 0 when measured, 2 when an input is unreadable."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--corpus", type=Path, required=True, help="holds docs.jsonl.gz")
    parser.add_argument("--events", type=Path, nargs="+", required=True, help="of runs of benchmarks.retrieval")
    parser.add_argument("--most", type=positive, default=1_000, metavar="N", help="events of each kind and run")
    options = parser.parse_args(arguments)
    try:
        texts, runs = read_texts(options.corpus), [_events(path) for path in options.events]
        found = drawn(runs, texts, options.most)
    except (CorpusError, OSError, InvalidMessageError) as error:
        sys.stderr.write(f"{error}\n")
        return 2
    except KeyError as error:
        sys.stderr.write(f"{options.corpus}: no document {error}\n")
        return 2
    print(json.dumps(figures(runs, found), indent=1))
    return 0


def _events(path: Path) -> list[Told]:
    events = (decode_event(line) for line in path.read_bytes().splitlines())
    return [event for event in events if not isinstance(event, Retraction)]


def _some(events: Iterable[Told], most: int, seed: int) -> list[Told]:
    by_kind: defaultdict[str, list[Told]] = defaultdict(list)
    for event in events:
        by_kind[kind_of(event)].append(event)
    chooser = random.Random(seed)
    return [event for _, each in sorted(by_kind.items()) for event in chooser.sample(each, min(most, len(each)))]


if __name__ == "__main__":
    sys.exit(main())
