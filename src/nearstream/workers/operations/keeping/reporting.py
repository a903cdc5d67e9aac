"""Report what was kept and dropped: for people as a page, for programs as JSON."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from html import escape
from typing import IO

import msgspec

from nearstream.workers.operations.keeping.choosing import Choice, Limit
from nearstream.workers.operations.terminal import printable

_CHARACTERS, _PERCENT = (0, 20, 50, 100, 200, 500, 1000, 2000), (0, 1, 2, 5, 10, 20, 30)
_FAMILIES_SHOWN, _EXAMPLES = 25, 10
_FAMILIES_MAX = 20_000  # whose dropped documents are counted at a time
_PAGE = """<!doctype html>
<html lang="en"><meta charset="utf-8"><title>What was kept</title>
<style>body{{font:15px/1.5 system-ui,sans-serif;max-width:60em;margin:2em auto;padding:0 1em}}
table{{border-collapse:collapse}}td,th{{padding:.2em 1em .2em 0;text-align:right;border-bottom:1px solid #8884}}
tr.chosen{{font-weight:bold}}summary{{cursor:pointer;overflow-wrap:anywhere}}li{{overflow-wrap:anywhere}}</style>
<h1>{headline}</h1>
<p>{lost}.</p>
<h2>With other limits</h2>
<p>A smaller limit keeps more, so its figures are upper bounds. A larger one also drops documents that cover others, so
more is lost than this table says.</p>
<table><tr><th>at most new<th>dropped<th>new characters in these<th>share of all</tr>
{limits}
</table>
<h2>The documents for which most were dropped</h2>
{families}
</html>
"""


class Dropped(msgspec.Struct, frozen=True):
    """A document that was dropped."""

    source: str  # file and line
    verdict: str | None  # what it is to `of`
    of: str  # file and line of the kept document that is most like it
    characters: int  # all characters of its normal form
    novel: int  # how many of them are in no kept document


@dataclass
class Sums:
    """What was kept and dropped so far."""

    limit: Limit
    kept: int = 0
    dropped: int = 0
    undecided: int = 0  # what was kept because it could not be read, or has no words
    refused: int = 0  # files and lines that were neither kept nor dropped, because they could not be held
    characters: int = 0
    lost: int = 0  # characters of what was dropped that are in no kept document
    # What other limits would drop: documents of which at most that much is new, and their new characters.
    steps: dict[Limit, list[int]] = field(default_factory=dict)
    # How many documents were dropped for a kept one, with the first ones. Only those with most are remembered.
    families: dict[str, tuple[int, list[Dropped]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Count for the limit and some others."""
        amounts = {*(_PERCENT if self.limit.is_percent else _CHARACTERS), self.limit.amount}
        self.steps = {Limit(amount, self.limit.is_percent): [0, 0] for amount in sorted(amounts)}

    def take(self, choice: Choice) -> Dropped | None:
        """Count a document, and return what is said about one that was dropped."""
        if not choice.item.stored:
            self.refused += 1
            return None
        self.kept += not choice.is_dropped
        self.undecided += not choice.characters
        self.characters += choice.characters
        for limit, counts in self.steps.items() if choice.of else ():
            if limit.drops(choice.new, choice.characters):
                counts[0] += 1
                counts[1] += choice.new
        if not choice.is_dropped:
            return None
        self.dropped += 1
        self.lost += choice.new
        source, of = printable(choice.item.source), printable(choice.of_source)
        found = Dropped(source, choice.verdict, of, choice.characters, choice.new)
        count, first = self.families.pop(of, (0, []))
        self.families[of] = count + 1, [*first, found] if count < _EXAMPLES else first
        if len(self.families) > _FAMILIES_MAX:
            self.families = dict(self.largest()[: _FAMILIES_MAX // 2])
        return found

    def largest(self) -> list[tuple[str, tuple[int, list[Dropped]]]]:
        """Return the kept documents for which most were dropped, the first one in front."""
        return sorted(self.families.items(), key=lambda each: -each[1][0])

    @property
    def headline(self) -> str:
        """What was done, as a sentence."""
        left = f", of which {self.undecided} could not be read or have no words" if self.undecided else ""
        refused = f", and could not read {self.refused} more" if self.refused else ""
        return f"kept {self.kept} of {self.kept + self.dropped} documents{left}{refused}"

    @property
    def loss(self) -> str:
        """What was dropped, as a sentence."""
        share = self.lost / self.characters if self.characters else 0.0
        limit = f"{self.limit}" if self.limit.is_percent else f"{self.limit} characters"
        return (
            f"dropped {self.dropped}, of each at most {limit} (estimated) are in no kept document, together some"
            f" {self.lost} ({100 * share:.2f} % of all)"
        )


def page(sums: Sums) -> bytes:
    """Return the report for people, as one file of HTML."""
    told = _PAGE.format(
        headline=escape(sums.headline.capitalize()),
        lost=escape(sums.loss.capitalize()),
        limits="\n".join(_limit_row(limit, dropped, new, sums) for limit, (dropped, new) in sums.steps.items()),
        families="\n".join(_families(sums)) or "<p>None.</p>",
    )
    return told.encode()


def _limit_row(limit: Limit, dropped: int, new: int, sums: Sums) -> str:
    chosen = ' class="chosen"' if limit == sums.limit else ""
    return f"<tr{chosen}><td>{limit}<td>{dropped}<td>{new}<td>{100 * new / max(sums.characters, 1):.2f} %</tr>"


def _families(sums: Sums) -> Iterator[str]:
    for name, (count, first) in sums.largest()[:_FAMILIES_SHOWN]:
        rows = [f"<li>{escape(each.source)}: {each.verdict}, {each.novel} new of {each.characters}" for each in first]
        rows += [f"<li>and {count - len(first)} more"] if count > len(first) else []
        yield f"<details><summary>{escape(name)}: {count} dropped</summary><ul>{''.join(rows)}</ul></details>"


class Data:
    """A report for programs, one JSON object with a line for each dropped document."""

    def __init__(self, file: IO[bytes]) -> None:
        """Write into an open file."""
        self._file, self._before = file, b'{"dropped":[\n'

    def take(self, dropped: Dropped) -> None:
        """Write a dropped document."""
        self._file.write(self._before + msgspec.json.encode(dropped))
        self._before = b",\n"

    def end(self, sums: Sums) -> None:
        """Write the sums."""
        told: dict[str, object] = {
            name: getattr(sums, name) for name in ("kept", "undecided", "refused", "characters", "lost")
        }
        steps = [{"max_new": str(each), "dropped": n, "new": new} for each, (n, new) in sums.steps.items()]
        told |= {"max_new": str(sums.limit), "limits": steps}
        start = self._before if not sums.dropped else b""
        self._file.write(start + b"\n]," + msgspec.json.encode(told)[1:] + b"\n")
