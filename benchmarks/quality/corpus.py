"""Labelled pairs of documents, read from a directory.

Each line of `docs.jsonl.gz` has `id`, `text` and `source`, some also `group` and `when` (Unix seconds). Each line of
`pairs.jsonl.gz` has two ids, their relation by exact measurement of the texts, whether this relation stays unchanged
when a bound of the label rules moves (`clear`), the origin of the pair, and the measurements (`Details`).
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

from nearstream.schemas.documents.document import Document

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
    """A file of the corpus is missing or invalid, as the message says."""


class Text(msgspec.Struct, frozen=True):
    """A document of the corpus, as it was collected."""

    id: str
    text: str
    source: str = ""
    when: float | None = None


class Details(msgspec.Struct, frozen=True):
    """Exact measurements of a pair of texts.

    Case, punctuation and white space are removed before measuring.
    """

    J: float  # resemblance of the sets of 5-word shingles
    Ca: float  # share of the shingles of a that are in b
    Cb: float  # share of the shingles of b that are in a
    LD: int  # Levenshtein distance in characters
    la: int  # characters of a
    lb: int  # characters of b
    wa: int  # words of a
    wb: int  # words of b
    # Words `[start, end)` of the best local segment in a.
    place_a: tuple[int, int] = msgspec.field(name="locA", default=(0, 0))
    # Words `[start, end)` of the best local segment in b.
    place_b: tuple[int, int] = msgspec.field(name="locB", default=(0, 0))
    matched: int = msgspec.field(name="lcov", default=0)  # words that match in this segment

    @property
    def longer(self) -> int:
        """Return the number of characters of the longer text, at least 1."""
        return max(self.la, self.lb, 1)

    @property
    def fewer_words(self) -> int:
        """Return the number of words of the text with fewer words."""
        return min(self.wa, self.wb)

    @property
    def word_ratio(self) -> float:
        """Return the smaller number of words over the larger one."""
        return self.fewer_words / max(self.wa, self.wb, 1)

    @property
    def containment_of_shorter(self) -> float:
        """Return the share of the shorter text's shingles in the other text.

        The shorter text is the one with fewer words.
        """
        return self.Ca if self.wa <= self.wb else self.Cb


class Pair(msgspec.Struct, frozen=True):
    """Two documents with the true relation of their texts.

    `inside` is the id of the inner document of a containment.
    """

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
    """Read all labelled pairs.

    Raises:
        CorpusError: The file is missing or does not hold pairs.
    """
    return list(_rows(corpus / "pairs.jsonl.gz", msgspec.json.Decoder(Pair).decode))


def read_texts(corpus: Path) -> dict[str, Text]:
    """Read all documents by id.

    Raises:
        CorpusError: The file is missing or does not hold documents.
    """
    return {text.id: text for text in _rows(corpus / "docs.jsonl.gz", msgspec.json.Decoder(Text).decode)}


def check(pairs: Iterable[Pair], texts: Mapping[str, Text]) -> None:
    """Check that the corpus has the documents of all pairs.

    Raises:
        CorpusError: A document is missing. The message names the first one.
    """
    for pair in pairs:
        for name in (pair.a, pair.b):
            if name not in texts:
                raise CorpusError(f"pair {pair.a}, {pair.b}: no document {name} in docs.jsonl.gz")


def document(text: Text, observed_at: datetime | None = None) -> Document:
    """Return a text as the document that a producer would send.

    It has no lineage. Without `observed_at` its time is that of the corpus, or the year 2000 if the corpus has none.
    """
    known = _EARLIEST if text.when is None else datetime.fromtimestamp(text.when, UTC)
    return Document(id=text.id, text=text.text, observed_at=observed_at or known)


def words(text: str) -> list[str]:
    """Return the words on which the labels are based.

    A word is a run of letters and digits after NFKC and casefold.
    """
    return _WORD.findall(unicodedata.normalize("NFKC", text).casefold())


def shingles(text: str) -> NDArray[np.int64]:
    """Return the hashes of the distinct 5-word shingles in ascending order.

    They are hashes of Python, which differ from process to process.
    """
    found = words(text)
    rows = zip(*(found[start:] for start in range(_SHINGLE_WORDS)), strict=False)
    return np.unique(np.fromiter(map(hash, rows), np.int64))


def share(part: float, whole: float) -> float | None:
    """Return part / whole to 4 decimals, None if whole is 0."""
    return round(part / whole, 4) if whole else None


def _rows(path: Path, decode: Callable[[bytes], _Row]) -> Iterator[_Row]:
    try:
        with gzip.open(path, "rb") as lines:
            for number, line in enumerate(lines, start=1):
                if line.strip():
                    yield _decoded(f"{path}:{number}", line, decode)
    except (OSError, EOFError) as error:
        raise CorpusError(f"{path}: {error}") from error


def _decoded(line_name: str, line: bytes, decode: Callable[[bytes], _Row]) -> _Row:
    try:
        return decode(line)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise CorpusError(f"{line_name}: {error}") from error
