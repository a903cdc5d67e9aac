"""Figures over labelled pairs and what was said of them."""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.corpus import DUPLICATES, RELATED, RELATIONS, Pair, share
from streams.estimate import Estimate

Figures = dict[str, Any]  # Any: a tree of numbers as JSON has it

WITHIN = 0.05


@dataclass(frozen=True)
class Judged:
    """What the signatures of a labelled pair say.

    `relation` is empty, and all else without meaning, if a text cannot be signed.
    """

    pair: Pair
    relation: str = ""
    rule: str = ""
    distance: int = 0
    low: int = 0
    high: int = 0
    inside: str | None = None
    numbers: Estimate | None = None
    longer_is_a: bool = True
    is_near_threshold: bool = False

    @property
    def line(self) -> dict[str, object]:
        """The prediction as it is written down."""
        said: dict[str, object] = {"a": self.pair.a, "b": self.pair.b, "relation": self.relation, "rule": self.rule}
        said |= {"distance": self.distance, "low": self.low, "high": self.high}
        return said if self.inside is None else said | {"inside": self.inside}

    @property
    def error(self) -> float:
        """Error of the distance over the longer length."""
        return abs(self.distance - self.pair.details.LD) / self.pair.details.longer


def detection(rows: Sequence[Judged], positive: Iterable[str]) -> Figures:
    """Precision, recall and F1 of telling these relations from all others."""
    wanted = frozenset(positive)
    truth, said = [row.pair.relation in wanted for row in rows], [row.relation in wanted for row in rows]
    both = sum(t and s for t, s in zip(truth, said, strict=True))
    return {
        "n": sum(truth),
        "predicted": sum(said),
        "precision": share(both, sum(said)),
        "recall": share(both, sum(truth)),
        "f1": share(2 * both, sum(truth) + sum(said)),
    }


def metrics(rows: Sequence[Judged]) -> Figures:
    """All figures for one set of pairs; macro F1 is over the relations that occur in it."""
    classes = {name: detection(rows, (name,)) for name in RELATIONS}
    present = [values["f1"] or 0.0 for values in classes.values() if values["n"]]
    related, duplicates = detection(rows, RELATED), detection(rows, DUPLICATES)
    inside = [row for row in rows if row.pair.relation == row.relation == "containment"]
    far = [row for row in rows if row.relation and row.pair.relation in RELATED - {"exact_duplicate"}]
    return {
        "n": len(rows),
        "missing": sum(not row.relation for row in rows),
        "accuracy": share(sum(row.relation == row.pair.relation for row in rows), len(rows)),
        "macro_f1": share(sum(present), len(present)),
        "related_precision": related["precision"],
        "related_recall": related["recall"],
        "near_duplicate_precision": duplicates["precision"],
        "near_duplicate_recall": duplicates["recall"],
        "containment_direction_n": len(inside),
        "containment_direction_accuracy": share(sum(row.inside == row.pair.inside for row in inside), len(inside)),
        **distances(far),
        "classes": classes,
    }


def distances(rows: Sequence[Judged]) -> Figures:
    """Mean error of the distance over the longer length, and how often it is small."""
    return {
        "distance_n": len(rows),
        "distance_mae": share(sum(row.error for row in rows), len(rows)),
        "share_within_05": share(sum(row.error <= WITHIN for row in rows), len(rows)),
    }


def scores(rows: Sequence[Judged]) -> Figures:
    """The figures over all pairs, over the clear ones, and the count of predictions for unknown pairs: none."""
    return {"all": metrics(rows), "clear": metrics([row for row in rows if row.pair.clear]), "unknown_pairs": 0}


def grouped(rows: Sequence[Judged], name_of: Callable[[Judged], str]) -> dict[str, list[Judged]]:
    """The rows by a name."""
    groups: defaultdict[str, list[Judged]] = defaultdict(list)
    for row in rows:
        groups[name_of(row)].append(row)
    return dict(sorted(groups.items()))


def accuracy_by(rows: Sequence[Judged], name_of: Callable[[Judged], str]) -> Figures:
    """Number of pairs and share told right, by a name."""
    return {
        name: {"n": len(each), "accuracy": share(sum(row.relation == row.pair.relation for row in each), len(each))}
        for name, each in grouped(rows, name_of).items()
    }


def origin(row: Judged) -> str:
    """Where a pair came from, without sizes."""
    return " ".join(word for word in row.pair.origin.split() if not re.search(r"\d", word))


def confusion(rows: Sequence[Judged]) -> Figures:
    """How often each relation was told, by the true one; counts above zero."""
    return {
        name: dict(Counter(row.relation or "missing" for row in each).most_common())
        for name, each in grouped(rows, lambda row: row.pair.relation).items()
    }
