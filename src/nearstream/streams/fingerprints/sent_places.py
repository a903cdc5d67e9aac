"""Map places in a normal form to places in the original text."""

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from nearstream.streams.fingerprints.normalize import normalize
from nearstream.streams.fingerprints.parameters import TextRules
from nearstream.streams.fingerprints.rewriting import own_text, plain_text, rules_for
from nearstream.streams.fingerprints.unicode_tables import SPACELESS, fold_table

_BLOCK_LEAST, _BLOCKS_MAX = 1024, 256  # characters, and how many blocks a text has
_AROUND = 8  # characters that show whether there is a blank between two blocks
_WORD_MAX = 64


def sent_places(text: str, places: Iterable[tuple[int, int]], rules: TextRules) -> list[tuple[int, int]]:
    """Return places of words in the original text.

    In scripts without spaces each character is a word. Of a longer word, 64 characters are one. A place that holds no
    word is left out. Where what is masked depends on its neighbours, places are off by a few characters.

    Args:
        text: The text as it was sent.
        places: Places `[start, end)` in characters of its normal form, in any order.
        rules: The rules of the normal form.
    """
    own = own_text(text, rules).own
    mapping, found = _mapping(own, rules_for(own, rules)), []
    lines = _lines(text, own)
    for first, last in places:
        start, end = mapping.start_of(first), mapping.end_of(last)
        if start < end:
            found.append((_in_text(start, lines), _in_text(end - 1, lines) + 1))
    return found


@dataclass(frozen=True)
class _Mapping:
    """Where blocks of a text are in its normal form."""

    text: str  # the text
    rules: TextRules  # the rules of the normal form
    blocks: Sequence[tuple[int, int]]  # where each block with letters begins and ends
    starts: Sequence[int]  # where the normal form of each begins
    sizes: Sequence[int]  # how many characters it has

    def start_of(self, place: int) -> int:
        """Return where the first word begins that is at most half before a place."""
        at = self._after(place + 1)
        if at == 0:
            return len(self.text)
        start, end = self._word(at - 1)
        if 2 * (at - 1) < self._middle(start, end):
            return start
        return len(self.text) - len(self.text[end:].lstrip())

    def end_of(self, place: int) -> int:
        """Return where the last word ends that is at most half behind a place."""
        at = self._after(place)
        if at == 0:
            return 0
        start, end = self._word(at - 1)
        return end if 2 * at > self._middle(start, end) else len(self.text[:start].rstrip())

    def _after(self, characters: int) -> int:
        """Return the end of the shortest beginning that has so many characters. 0: none has."""
        number = bisect_right(self.starts, characters - 1) - 1
        if number < 0:
            return 0
        begin, end = self.blocks[number]
        wanted = characters - self.starts[number]
        low, high, few, many = begin, end, 0, self.sizes[number]
        at = end
        while wanted < many and high - low > 1:
            at = min(max(low + round((high - low) * (wanted - few) / (many - few)), low + 1), high - 1)
            found = _sizes([self.text[begin:at]], self.rules)[0]
            if found == wanted:
                break
            if found < wanted:
                low, few, at = at, found, high
            else:
                high, many = at, found
        while at - 1 > begin and not _is_letter(self.text[at - 1]):
            at -= 1
        return at

    def _middle(self, start: int, end: int) -> int:
        """Return the middle of a word, times two, without its signs."""
        letters = [at for at in range(start, end) if _is_letter(self.text[at])]
        return letters[0] + letters[-1] + 1 if letters else start + end

    def _word(self, at: int) -> tuple[int, int]:
        """Return the word around a character."""
        start, end = at, at + 1
        if not _stands_alone(self.text[at]):
            while start and at - start < _WORD_MAX and _is_of_word(self.text[start - 1]):
                start -= 1
            while end < len(self.text) and end - at < _WORD_MAX and _is_of_word(self.text[end]):
                end += 1
        while end < len(self.text) and _is_mark(self.text[end]):
            end += 1
        return start, end


def _mapping(text: str, rules: TextRules) -> _Mapping:
    size = max(_BLOCK_LEAST, len(text) // _BLOCKS_MAX)
    blocks = re.compile(f".{{1,{size}}}(?!\\S)|.{{1,{size}}}", re.DOTALL)
    places = [match.span() for match in blocks.finditer(text)]
    sizes = _sizes([text[start:end] for start, end in places], rules)
    blanks = [_has_blank(text, cut, rules) for _, cut in places]
    kept = [number for number, size in enumerate(sizes) if size]
    starts = [0] if kept else []
    for one, other in pairwise(kept):
        starts.append(starts[-1] + sizes[one] + (other - one > 1 or blanks[one]))
    return _Mapping(text, rules, [places[number] for number in kept], starts, [sizes[number] for number in kept])


def _has_blank(text: str, cut: int, rules: TextRules) -> bool:
    """Return whether the normal form has a blank at a cut."""
    before, after = text[max(0, cut - _AROUND) : cut], text[cut : cut + _AROUND]
    around = before + after
    if after[:1].isspace() and (around.isascii() or not any(map(_stands_alone, around))):
        return True
    one, other, both = _sizes([before, after, around], rules)
    return not one or not other or both > one + other


def _sizes(texts: Sequence[str], rules: TextRules) -> list[int]:
    return [normalize(plain_text(text, rules), rules).characters for text in texts]


def _is_letter(letter: str) -> bool:
    return letter.isalnum() or _is_mark(letter)


def _is_mark(letter: str) -> bool:
    return unicodedata.category(letter).startswith("M")


def _stands_alone(letter: str) -> bool:
    return bool(fold_table()[ord(letter)] & SPACELESS)


def _is_of_word(letter: str) -> bool:
    return not (letter.isspace() or _stands_alone(letter))


def _lines(text: str, own: str) -> list[tuple[int, int]]:
    """Return where each line begins, in a part of a text and in the text."""
    if own == text:
        return [(0, 0)]
    found, start, at = [], 0, 0
    for line in own.split("\n"):
        at = max(text.find(line, at), at)
        found.append((start, at))
        start, at = start + len(line) + 1, at + len(line)
    return found


def _in_text(at: int, lines: Sequence[tuple[int, int]]) -> int:
    own, sent = lines[bisect_right(lines, (at, 1 << 62)) - 1]
    return sent + at - own
