"""Texts for races by size, made from files of the repository."""

import json
import re
from functools import cache
from hashlib import blake2b
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).parents[1]
_EXAMPLES: Final = ROOT / "examples/documents.jsonl"
_CHINESE: Final = ROOT / "benchmarks/texts/zh-prose.txt"
_JAPANESE: Final = ROOT / "benchmarks/texts/ja-declaration.txt"

ENGLISH: Final = {"en-1": 1_000, "en-5": 5_000, "en-13.5": 13_500, "en-27": 27_000, "en-100": 100_000}
SPACELESS: Final = {"cjk-5": 5_000, "cjk-13.5": 13_500}
SIZES: Final = (*ENGLISH, *SPACELESS)

_COUNTS: Final = {"en-1": 96, "en-5": 48, "en-13.5": 16, "en-27": 8, "en-100": 4, "cjk-5": 6, "cjk-13.5": 6}
_QUOTES: Final = (
    (re.compile(r'(?<![^\s(\[-])"'), "\u201c"),
    (re.compile('"'), "\u201d"),
    (re.compile(r"(?<![^\s(\[\u201c-])'"), "\u2018"),
    (re.compile("'"), "\u2019"),
    (re.compile(r"(?<!-)--(?!-)"), "\u2014"),
    (re.compile(r"(?<!\.)\.\.\.(?!\.)"), "\u2026"),
)


def texts(size: str) -> list[str]:
    """Return the texts of one of `SIZES`, which never change.

    English texts have exactly that many characters. Every second one has the quotes, dashes and dots of a word
    processor. Texts without spaces have at most that many bytes of UTF-8. At most a third of them are Japanese, the
    others Chinese.
    """
    if size in ENGLISH:
        cuts = [_english(ENGLISH[size], index, _COUNTS[size]) for index in range(_COUNTS[size])]
        return [typographic(text) if index % 2 else text for index, text in enumerate(cuts)]
    return _spaceless(SPACELESS[size], _COUNTS[size])


def english(characters: int) -> str:
    """Return the first characters of all example documents, joined.

    All of them together have about 1.7 million characters, which is the most that is returned.
    """
    return "\n\n".join(text for _, text in _documents())[:characters]


def originals() -> list[str]:
    """Return the original examples, of each history only the last state."""
    by_history = {str(entry["id"]).partition("@")[0]: str(entry["text"]) for entry in _entries()}
    return list(by_history.values())


def speeches() -> list[str]:
    """Return unrelated texts of 60,000 characters.

    Each spans two or three whole speeches or more.
    """
    joined = "\n\n".join(text for kind, text in _documents() if kind == "speech")
    return [joined[start : start + 60_000] for start in range(0, len(joined) - 60_000, 60_000)]


def typographic(text: str) -> str:
    """Replace quotes, dashes and dots by those of a word processor.

    These are curly quotes, long dashes, and an ellipsis of one character.
    """
    for pattern, character in _QUOTES:
        text = pattern.sub(character, text)
    return text


def digest(sizes: list[str]) -> str:
    """Return 16 hex digits that identify the texts of these sizes."""
    hashed = blake2b(digest_size=8)
    for size in sizes:
        for text in texts(size):
            hashed.update(text.encode() + b"\0")
    return hashed.hexdigest()


def _english(characters: int, index: int, count: int) -> str:
    """Join documents, starting after the first third of one of them.

    So no text starts with the heading of an example.
    """
    documents = [text for _, text in _documents()]
    start = index * len(documents) // count
    text = documents[start][len(documents[start]) // 3 :]
    while len(text) < characters:
        start = (start + 1) % len(documents)
        text += "\n\n" + documents[start]
    return text[:characters]


@cache
def _documents() -> list[tuple[str, str]]:
    """Return kind and text of the original examples, sorted by id."""
    return [(entry["labels"]["kind"], entry["text"]) for entry in _entries()]


def _entries() -> list[dict[str, Any]]:
    """Return the examples that were not made from other examples, sorted by id."""
    entries = [json.loads(line) for line in _EXAMPLES.read_text(encoding="utf-8").splitlines()]
    entries = [entry for entry in entries if entry["labels"]["kind"] in ("revision", "speech")]
    return sorted(entries, key=lambda entry: str(entry["id"]))


def _spaceless(size: int, count: int) -> list[str]:
    japanese = _JAPANESE.read_bytes()
    cuts = [japanese[start : start + size] for start in range(0, max(1, len(japanese) - size), size)]
    chinese = _CHINESE.read_bytes()
    starts = range(0, len(chinese) - size + 1, size)
    cuts += [chinese[start : start + size] for start in starts]
    return [cut.decode("utf-8", "ignore") for cut in cuts[:count]]
