"""Split legal notices and signature blocks from the text of a mail."""

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import chain, pairwise
from typing import NamedTuple

from nearstream.streams.fingerprints.notice_phrases import PHRASES

_TEXT_MAX_CHARACTERS = 32_768  # of a longer text a notice is a small part
_WORDS_PER_PHRASE = 40  # of a notice, so that it hides no other text
_SIGNATURE_MAX_CHARACTERS, _SIGNATURE_MAX_LINES = 1_000, 15
_NOTICE_MIN_CHARACTERS = 20
_WIDTH_MAX = 120  # of lines that were broken to fit a window
_WIDTH_SHARE = 0.8  # of that width, which a line has if it was broken
_SIGNATURE = re.compile(r"^-- ?\r?$", re.MULTILINE)  # RFC 3676, section 4.3
_BLANK_LINES = re.compile(r"\n[ \t\r\n>]*\n")
_SENTENCE_END = re.compile(r"[.!?:]\s|[。\uff01\uff1f]")
_WORD = re.compile(r"\w+")
_HINTS = frozenset(chain.from_iterable(each.hints for each in PHRASES.values()))
_PHRASE = re.compile(
    r"\b(?:" + "|".join(chain.from_iterable(each.phrases for each in PHRASES.values())) + ")", re.IGNORECASE
)


class Split(NamedTuple):
    """A text of a message, split.

    Attributes:
        own: What its sender wrote for it.
        common: The notices and the signature block.
    """

    own: str
    common: str = ""


def split_notices(text: str) -> Split:
    """Split known legal notices, and a signature block at the end, from a text.

    A notice begins with a sentence that has a known phrase, and ends with its paragraph. It has a phrase for every 40
    words. A signature block follows a line of two dashes, and has at most 15 lines and 1,000 characters.

    Args:
        text: The text of a message. One of more than 32,768 characters is returned as it is.
    """
    if len(text) > _TEXT_MAX_CHARACTERS:
        return Split(text)
    text, signature = _split_signature(text)
    hints = _hints(text)
    if not hints:
        return Split(text, signature)
    pieces = [_split_block(block, is_hinted=is_hinted) for block, is_hinted in _blocks(text, hints)]
    common = [piece.common for piece in pieces if piece.common]
    return Split("\n\n".join(piece.own for piece in pieces), "\n".join([*common, *([signature] if signature else ())]))


def _split_signature(text: str) -> Split:
    found = list(_SIGNATURE.finditer(text))
    if not found:
        return Split(text)
    block = text[found[-1].end() :].strip()
    is_long = len(block) > _SIGNATURE_MAX_CHARACTERS or block.count("\n") >= _SIGNATURE_MAX_LINES
    return Split(text) if is_long else Split(text[: found[-1].start()], block)


def _hints(text: str) -> list[int]:
    """Return the first place of each hint in each block, in order."""
    lower = text.lower()
    if len(lower) != len(text):  # lower case has more characters for a few code points
        lower = "".join(letter.lower()[0] for letter in text)
    places = []
    for hint in _HINTS:
        place = lower.find(hint)
        while place >= 0:
            places.append(place)
            after = _BLANK_LINES.search(lower, place)
            place = lower.find(hint, after.end()) if after else -1
    return sorted(places)


def _blocks(text: str, hints: Sequence[int]) -> Iterator[tuple[str, bool]]:
    """Yield the text between blank lines, and whether it has a hint."""
    start = 0
    for blank in (*_BLANK_LINES.finditer(text), None):
        end = blank.start() if blank else len(text)
        yield text[start:end], bisect_left(hints, start) < bisect_left(hints, end)
        start = blank.end() if blank else end


def _split_block(block: str, *, is_hinted: bool) -> Split:
    """Split the notices from a block of lines, some of which were broken to fit a width."""
    if not is_hinted:
        return Split(block)
    lines, start = block.split("\n"), 0
    width = max((len(line) for line in lines if len(line) <= _WIDTH_MAX), default=0)
    pieces = []
    for place, line in enumerate(lines, 1):
        if place == len(lines) or not _is_broken(line, lines[place], width):
            pieces.append(_split_paragraph("\n".join(lines[start:place])))
            start = place
    return Split("\n".join(piece.own for piece in pieces), "\n".join(piece.common for piece in pieces if piece.common))


def _is_broken(line: str, following: str, width: int) -> bool:
    """Return whether a line was broken because the next word had no room."""
    first = following.lstrip(" \t>").partition(" ")[0]
    return len(line) <= _WIDTH_MAX and len(line) + 1 + len(first) > _WIDTH_SHARE * width


def _split_paragraph(paragraph: str) -> Split:
    """Split a notice from a paragraph: all from the first sentence with a phrase on."""
    if len(paragraph) < _NOTICE_MIN_CHARACTERS:
        return Split(paragraph)
    starts = [0, *(end.end() for end in _SENTENCE_END.finditer(paragraph)), len(paragraph)]
    begin, n_phrases = len(paragraph), 0
    for start, end in pairwise(starts):
        found = len(_PHRASE.findall(_words(paragraph[start:end])))
        begin, n_phrases = (min(begin, start) if found else begin), n_phrases + found
    is_notice = _words(paragraph[begin:]).count(" ") < _WORDS_PER_PHRASE * n_phrases
    return Split(paragraph[:begin], paragraph[begin:]) if is_notice else Split(paragraph)


def _words(text: str) -> str:
    return " ".join(_WORD.findall(text.lower()))
