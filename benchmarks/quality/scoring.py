"""Figures over labelled pairs and the verdicts about them."""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.quality.corpus import DUPLICATES, RELATED, RELATIONS, Pair, share
from nearstream.streams.estimates.estimate import Estimate
from nearstream.streams.estimates.passages import Passage

Figures = dict[str, Any]  # Any: a tree of numbers as in JSON

WITHIN = 0.05


@dataclass(frozen=True)
class Judged:
    """A labelled pair with the verdict and estimates from its signatures.

    If a text cannot be signed, `relation` is empty and all other fields but `pair` have no meaning. Only a containment
    has a `segment`.
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
    segment: Passage | None = None

    @property
    def line(self) -> dict[str, object]:
        """Return the prediction as it is written to a file."""
        said: dict[str, object] = {"a": self.pair.a, "b": self.pair.b, "relation": self.relation, "rule": self.rule}
        said |= {"distance": self.distance, "low": self.low, "high": self.high}
        return said if self.inside is None else said | {"inside": self.inside}

    @property
    def error(self) -> float:
        """Return the error of the distance over the longer length."""
        return abs(self.distance - self.pair.details.LD) / self.pair.details.longer


def detection(rows: Sequence[Judged], positive: Iterable[str]) -> Figures:
    """Return precision, recall and F1 of detecting these relations."""
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
    """Return all figures for one set of pairs.

    The macro F1 is the mean over the relations that occur in this set.
    """
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
    """Return the mean error of distances, and how often it is small.

    Errors are divided by the longer length. Up to 0.05 is small.
    """
    return {
        "distance_n": len(rows),
        "distance_mae": share(sum(row.error for row in rows), len(rows)),
        "share_within_05": share(sum(row.error <= WITHIN for row in rows), len(rows)),
    }


def scores(rows: Sequence[Judged]) -> Figures:
    """Return the figures over all pairs and over the clear ones.

    `unknown_pairs`, the number of predictions for pairs without a label, is always 0.
    """
    return {"all": metrics(rows), "clear": metrics([row for row in rows if row.pair.clear]), "unknown_pairs": 0}


def grouped(rows: Sequence[Judged], name_of: Callable[[Judged], str]) -> dict[str, list[Judged]]:
    """Group the rows by a name, sorted."""
    groups: defaultdict[str, list[Judged]] = defaultdict(list)
    for row in rows:
        groups[name_of(row)].append(row)
    return dict(sorted(groups.items()))


def accuracy_by(rows: Sequence[Judged], name_of: Callable[[Judged], str]) -> Figures:
    """Return the number of pairs and the accuracy, by a name."""
    return {
        name: {"n": len(each), "accuracy": share(sum(row.relation == row.pair.relation for row in each), len(each))}
        for name, each in grouped(rows, name_of).items()
    }


def origin(row: Judged) -> str:
    """Return the origin of a pair without the words that have digits."""
    return " ".join(word for word in row.pair.origin.split() if not re.search(r"\d", word))


def confusion(rows: Sequence[Judged]) -> Figures:
    """Count the verdicts for each true relation.

    Only counts above zero are listed.
    """
    return {
        name: dict(Counter(row.relation or "missing" for row in each).most_common())
        for name, each in grouped(rows, lambda row: row.pair.relation).items()
    }
