"""The texts that are raced, by size, made from what the repository holds."""

import json
import re
from functools import cache
from hashlib import blake2b
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]
_EXAMPLES: Final = ROOT / "examples/documents.jsonl"
_CHINESE: Final = ROOT / "benchmarks/texts/zh-tang-poems.txt"
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
    """The texts of one of `SIZES`, always the same.

    English ones have that many characters; every second one has the quotes, dashes and dots of a word processor. Those
    without spaces have at most that many bytes of UTF-8: a third or less of them Japanese, the others Chinese.
    """
    if size in ENGLISH:
        cuts = [_english(ENGLISH[size], index, _COUNTS[size]) for index in range(_COUNTS[size])]
        return [typographic(text) if index % 2 else text for index, text in enumerate(cuts)]
    return _spaceless(SPACELESS[size], _COUNTS[size])


def english(characters: int) -> str:
    """So many characters of all example documents, joined, at most 2 million."""
    return "\n\n".join(text for _, text in _documents())[:characters]


def speeches() -> list[str]:
    """Texts of 60,000 characters, none of which has to do with another, each of two or three whole speeches or more."""
    joined = "\n\n".join(text for kind, text in _documents() if kind == "speech")
    return [joined[start : start + 60_000] for start in range(0, len(joined) - 60_000, 60_000)]


def typographic(text: str) -> str:
    """The text as a word processor sets it: curly quotes, long dashes, an ellipsis as one character."""
    for pattern, character in _QUOTES:
        text = pattern.sub(character, text)
    return text


def digest(sizes: list[str]) -> str:
    """16 hex digits that name the texts of these sizes."""
    hashed = blake2b(digest_size=8)
    for size in sizes:
        for text in texts(size):
            hashed.update(text.encode() + b"\0")
    return hashed.hexdigest()


def _english(characters: int, index: int, count: int) -> str:
    """Joined documents from the first third of one of them on: no heading of an example starts each text."""
    documents = [text for _, text in _documents()]
    start = index * len(documents) // count
    text = documents[start][len(documents[start]) // 3 :]
    while len(text) < characters:
        start = (start + 1) % len(documents)
        text += "\n\n" + documents[start]
    return text[:characters]


@cache
def _documents() -> list[tuple[str, str]]:
    """Kind and text of the examples that were not made from one another, in order of their ids."""
    entries = [json.loads(line) for line in _EXAMPLES.read_text(encoding="utf-8").splitlines()]
    entries = [entry for entry in entries if entry["labels"]["kind"] in ("revision", "speech")]
    return [(entry["labels"]["kind"], entry["text"]) for entry in sorted(entries, key=lambda entry: str(entry["id"]))]


def _spaceless(size: int, count: int) -> list[str]:
    japanese = _JAPANESE.read_bytes()
    cuts = [japanese[start : start + size] for start in range(0, max(1, len(japanese) - size), size)]
    chinese = _CHINESE.read_bytes()
    starts = range(0, len(chinese) - size + 1, size)
    cuts += [chinese[start : start + size] for start in starts]
    return [cut.decode("utf-8", "ignore") for cut in cuts[:count]]
