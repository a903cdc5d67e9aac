"""Labelled pairs of documents, read from a directory.

`docs.jsonl.gz` holds `id`, `text`, `source`, for some `group` and `when` (Unix seconds); `pairs.jsonl.gz` holds two
ids, their relation by exact measurement of the texts, whether it stays the same when a bound of the label rules moves
(`clear`), where the pair came from, and those measurements (`Details`).
"""

import gzip
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal, TypeVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from schemas.document import Document

RELATIONS = (
    "exact_duplicate",
    "near_duplicate",
    "containment",
    "version",
    "rearranged",
    "overlap",
    "unrelated",
)
RELATED = frozenset(RELATIONS) - {"unrelated"}
DUPLICATES = frozenset({"exact_duplicate", "near_duplicate"})
Relation = Literal["exact_duplicate", "near_duplicate", "containment", "version", "rearranged", "overlap", "unrelated"]

_SHINGLE_WORDS = 5
_WORD = re.compile(r"[^\W_]+")
_EARLIEST = datetime(2000, 1, 1, tzinfo=UTC)


class CorpusError(Exception):
    """A file does not hold what it should; the message says where."""


class Text(msgspec.Struct, frozen=True):
    """One document as it was collected."""

    id: str
    text: str
    source: str = ""
    when: float | None = None


class Details(msgspec.Struct, frozen=True):
    """Exact measurements of a pair, on texts without case, punctuation and white space.

    Attributes:
        J: Resemblance of the sets of 5-word shingles.
        Ca: Share of a's shingles that b has.
        Cb: Share of b's shingles that a has.
        LD: Levenshtein distance in characters.
        la: Characters of a.
        lb: Characters of b.
        wa: Words of a.
        wb: Words of b.
        place_a: Words `[start, end)` of the best local segment in a.
        place_b: The same in b.
        matched: Words that match in this segment.
    """

    J: float
    Ca: float
    Cb: float
    LD: int
    la: int
    lb: int
    wa: int
    wb: int
    place_a: tuple[int, int] = msgspec.field(name="locA", default=(0, 0))
    place_b: tuple[int, int] = msgspec.field(name="locB", default=(0, 0))
    matched: int = msgspec.field(name="lcov", default=0)

    @property
    def longer(self) -> int:
        """Characters of the longer one, at least 1."""
        return max(self.la, self.lb, 1)

    @property
    def fewer_words(self) -> int:
        """Words of the shorter one."""
        return min(self.wa, self.wb)

    @property
    def word_ratio(self) -> float:
        """Words of the shorter over those of the longer."""
        return self.fewer_words / max(self.wa, self.wb, 1)

    @property
    def containment_of_shorter(self) -> float:
        """Share of the shingles of the one with fewer words that the other has."""
        return self.Ca if self.wa <= self.wb else self.Cb


class Pair(msgspec.Struct, frozen=True):
    """Two documents with the relation that their texts have; `inside` names the inner one of a containment."""

    a: str
    b: str
    relation: Relation
    clear: bool
    details: Details
    origin: str = ""
    src: tuple[str, str] = ("", "")
    inside: str | None = None


_Row = TypeVar("_Row", Text, Pair)


def read_pairs(corpus: Path) -> list[Pair]:
    """All labelled pairs.

    Raises:
        CorpusError: The file is missing or does not hold pairs.
    """
    return list(_rows(corpus / "pairs.jsonl.gz", msgspec.json.Decoder(Pair).decode))


def read_texts(corpus: Path) -> dict[str, Text]:
    """All documents by id.

    Raises:
        CorpusError: The file is missing or does not hold documents.
    """
    return {text.id: text for text in _rows(corpus / "docs.jsonl.gz", msgspec.json.Decoder(Text).decode)}


def check(pairs: Iterable[Pair], texts: Mapping[str, Text]) -> None:
    """Refuses pairs of documents that are not there.

    Raises:
        CorpusError: Names the first one.
    """
    for pair in pairs:
        for name in (pair.a, pair.b):
            if name not in texts:
                raise CorpusError(f"pair {pair.a}, {pair.b}: no document {name}")


def document(text: Text, observed_at: datetime | None = None) -> Document:
    """A text as it would be sent, without lineage; its time is that of its history, if none is given."""
    known = _EARLIEST if text.when is None else datetime.fromtimestamp(text.when, UTC)
    return Document(id=text.id, text=text.text, observed_at=observed_at or known)


def words(text: str) -> list[str]:
    """The words on which labels rest: runs of letters and digits after NFKC and casefold."""
    return _WORD.findall(unicodedata.normalize("NFKC", text).casefold())


def shingles(text: str) -> NDArray[np.int64]:
    """Hashes of the distinct 5-word shingles, ascending; they differ from process to process."""
    found = words(text)
    rows = zip(*(found[start:] for start in range(_SHINGLE_WORDS)), strict=False)
    return np.unique(np.fromiter(map(hash, rows), np.int64))


def share(part: float, whole: float) -> float | None:
    """Quotient, rounded to 4 decimals; None when there is nothing to divide by."""
    return round(part / whole, 4) if whole else None


def _rows(path: Path, decode: Callable[[bytes], _Row]) -> Iterator[_Row]:
    try:
        with gzip.open(path, "rb") as lines:
            for number, line in enumerate(lines, start=1):
                if line.strip():
                    yield _decoded(f"{path}:{number}", line, decode)
    except (OSError, EOFError) as error:
        raise CorpusError(f"{path}: {error}") from error


def _decoded(place: str, line: bytes, decode: Callable[[bytes], _Row]) -> _Row:
    try:
        return decode(line)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise CorpusError(f"{place}: {error}") from error
