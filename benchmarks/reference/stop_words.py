"""Shingles that begin with a stop word.

Source: Leskovec, Rajaraman and Ullman, Mining of Massive Datasets, sections 3.2.4 and 3.8.6: an article has many stop
words, what surrounds it on a page has few.
"""

import re
from collections.abc import Collection

_WORD = re.compile(r"[^\W_]+")


def stop_word_shingles(text: str, stop_words: Collection[str], *, complete: bool = True) -> list[str]:
    """Return each stop word with the two words that follow it.

    Args:
        text: Any text.
        stop_words: Words in lower case.
        complete: Leave out a stop word with fewer than two words after it.
    """
    words = _WORD.findall(text.lower())
    last = len(words) - 3 if complete else len(words) - 1
    return [" ".join(words[at : at + 3]) for at, word in enumerate(words) if word in stop_words and at <= last]
