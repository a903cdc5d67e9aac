"""Shingles that begin with a stop word.

Source: Leskovec, Rajaraman and Ullman, Mining of Massive Datasets, sections 3.2.4 and 3.8.6: an article has many stop
words, what surrounds it on a page has few.
"""

import re
from collections.abc import Collection

_WORD = re.compile(r"[^\W_]+")
# The function words of English: articles, pronouns, prepositions, conjunctions, auxiliaries.
_FUNCTION_WORDS = """
    a about above after again against all also am an and any are as at be because been before being below
    between both but by can could did do does doing down during each few for from further had has have having
    he her here hers herself him himself his how i if in into is it its itself just me more most my myself no
    nor not now of off on once only or other our ours ourselves out over own same she should so some such than
    that the their theirs them themselves then there these they this those through to too under until up upon
    very was we were what when where which while who whom why will with would you your yours yourself
    yourselves
"""
ENGLISH = frozenset(_WORD.findall(_FUNCTION_WORDS))


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
