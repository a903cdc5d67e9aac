"""The signs of a text that mean something, such as currency, operators, decimal marks and emoji.

The normal form leaves all signs out. With these, a text in which only a sign changes is not equal.
"""

import re
import unicodedata

from nearstream.streams.fingerprints.plain_letters import beyond_ascii
from nearstream.streams.native import native

# Music, sign writing, and scripts newer than Unicode 14.0.
_UNREAD = re.compile(
    "[\U000105c0-\U000105ff\U00010940-\U0001095f\U00010d40-\U00010d8f\U00011380-\U000113ff\U00011bc0-\U00011bff"
    "\U00011db0-\U00011def\U00011f00-\U00011f5f\U00012550-\U0001268f\U00013460-\U000143ff\U00016100-\U0001613f"
    "\U00016d40-\U00016d7f\U00016ea0-\U00016edf\U00018d80-\U000191df\U0001d000-\U0001d24f\U0001d800-\U0001daaf"
    "\U0001e4d0-\U0001e4ff\U0001e5d0-\U0001e5ff\U0001e6c0-\U0001e6ff\U0002ebf0-\U0002ee5f\U00031350-\U0003fffd]+"
)
_SMALL = "[\u00b2\u00b3\u00b9\u00bc-\u00be\u2070-\u208e\u2150-\u215f]"
_RAISED, _HAS_SMALL = re.compile(f"(?<=[0-9]){_SMALL}+"), re.compile(_SMALL)
_WRITTEN_AS = str.maketrans(dict.fromkeys("\u2010\u2011\u2012\u2013\u2212", "-") | {"\u2019": "'", "\u2044": "/"})


def signs(text: str) -> bytes:
    """Return the signs of a text that mean something, each with the letter or digit that follows it, in order.

    These are currency, percent, mathematics, arrows and emoji wherever they are, marks between two digits, a minus or a
    point in front of a number, `*`, `/` and `^` between two words, `#` at the end of a word, and `!` in front of a word
    or of `=`. `+`, `<`, `=` and `>` count in rows of up to three. A row of `>` at the start of a line is a quote.
    Braille and three private code points in a row count as text that no normal form holds. All others are punctuation
    or layout, which includes line breaks.
    """
    found = native.signs(text.encode("utf-8", "surrogatepass")).decode()
    if not found.isascii():
        found = unicodedata.normalize("NFKC", found).translate(_WRITTEN_AS)
    return found.lower().encode()


def unread(text: str) -> bytes:
    """Return the text that no normal form holds, as it came.

    These are music, sign writing and scripts newer than Unicode 14.0, which a newer Python would compose or read in
    another case. Small digits and fractions behind a digit count too, because NFKC makes digits of the number of them.
    """
    if text.isascii():
        return b""
    beyond = beyond_ascii(text)
    found = _RAISED.findall(text) if _HAS_SMALL.search(beyond) else []
    if _UNREAD.search(beyond):
        found = [*_UNREAD.findall(text), *found]
    return " ".join(found).encode()
