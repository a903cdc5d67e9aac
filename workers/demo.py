"""The example documents streamed through the main job, then known against seen relations."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import msgspec

from schemas.events import Containment, Event, Retraction, kind_of

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"
AGREEMENT_MIN = 0.95
_COLUMNS = ("relation", "known", "seen as such", "seen otherwise", "missed")


class Known(msgspec.Struct, frozen=True):
    """One relation that the history of the texts tells."""

    newer: str
    older: str
    relation: str
    inner: str = ""


@dataclass(frozen=True)
class Comparison:
    """Known relations against those seen.

    Attributes:
        rows: Relation, known, seen as such, seen otherwise, missed.
        agreement: Share of the known relations seen as such; unrelated ones: not named at all.
        beyond: Pairs that were named though history tells nothing of them.
    """

    rows: tuple[tuple[str, int, int, int, int], ...]
    agreement: float
    beyond: int

    @property
    def good(self) -> bool:
        """Whether at least 95 % agree."""
        return self.agreement >= AGREEMENT_MIN


def known_relations(folder: Path) -> list[Known]:
    """The relations of `relations.jsonl`.

    Raises:
        OSError: There is no such file.
        msgspec.DecodeError: It does not hold relations.
    """
    path = folder / "relations.jsonl"
    if not path.exists():
        raise FileNotFoundError(f"{path} does not exist: name the folder `examples` of a checkout")
    lines = path.read_bytes().splitlines()
    return [msgspec.json.decode(line, type=Known) for line in lines if line.strip()]


def compare(known: Iterable[Known], events: Iterable[Event], sent: frozenset[str]) -> Comparison:
    """Known against seen; relations that are not `sent` by default count as right when nothing is said."""
    seen: dict[frozenset[str], tuple[str, str]] = {}
    for event in events:
        if not isinstance(event, Retraction):
            inner = event.inner if isinstance(event, Containment) else ""
            seen[frozenset((event.newer.id, event.older.id))] = (kind_of(event), inner)
    counts: dict[str, Counter[str]] = {}
    pairs = set()
    for row in known:
        pair = frozenset((row.newer, row.older))
        pairs.add(pair)
        expected = (row.relation, row.inner) if row.relation in sent else None
        counts.setdefault(row.relation, Counter())[_verdict(expected, seen.get(pair))] += 1
    rows = tuple(
        (relation, count.total(), count["right"], count["otherwise"], count["missed"])
        for relation, count in sorted(counts.items())
    )
    agreement = sum(row[2] for row in rows) / max(sum(row[1] for row in rows), 1)
    return Comparison(rows, agreement, len(seen.keys() - pairs))


def table(comparison: Comparison) -> str:
    """The comparison as aligned text."""
    rows = [_COLUMNS, *((row[0], *map(str, row[1:])) for row in comparison.rows)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(_COLUMNS))]
    lines = ["  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]) for row in rows]
    lines.append(f"agreement {comparison.agreement:.1%}; pairs seen beyond the known ones: {comparison.beyond}")
    return "\n".join(lines)


def _verdict(expected: tuple[str, str] | None, seen: tuple[str, str] | None) -> str:
    if seen == expected:
        return "right"
    return "missed" if seen is None else "otherwise"
