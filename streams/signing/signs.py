"""The signs of a text that mean something, such as currency, operators, decimal marks and emoji.

The normal form leaves all signs out. With these, a text in which only a sign changes is not equal.
"""

import re
import unicodedata

from nearstream.streams.native import native

# Signs that always mean something: $ % &, and outside ASCII currency, degrees, per mille, mathematics, arrows and
# pictures. Boxes, blocks and geometric shapes are layout.
_ALWAYS = (
    r"$%&\u00a2-\u00a5\u00ac\u00b0\u00b1\u00d7\u00f7\u2030\u2031\u20a0-\u20c0\u2190-\u23ff\u2600-\u27bf\u2900-\u2bff"
    r"\uff04-\uff06\uff0b\uff1c-\uff1e\uffe0-\uffe6\U0001f000-\U0001faff"
)
_MATH = "+<=>"
_DASHES = r"\u2010-\u2013\-"
_MARKS = rf".,:/'*^\u066b\u066c\u2019{_DASHES}"
# A class comes first, because a search for a class is fast. What is around the sign is looked at behind it.
_SIGN = re.compile(
    rf"[{_ALWAYS}{_MATH}{_MARKS}!](?:"
    rf"(?<=[{_ALWAYS}])"
    rf"|(?<=[{_MATH}])(?<![{_MATH}].)(?<!\n>)(?<!\A>)[{_MATH}]{{0,2}}(?![{_MATH}])"
    rf"|(?<=\d[{_MARKS}])(?=\d)"
    rf"|(?<=[.{_DASHES}])(?<![\w.,')\]\-].)(?=\d)"
    r"|(?<=\w[ \n][/^])(?=[ \n]\w)|(?<=\w[*^])(?=\w)"
    r"|(?<=!)(?:(?==)|(?<![\w!?].)(?=[\w(]))"
    r")\s*\w?",
    re.DOTALL | re.ASCII,
)
_WRITTEN_AS = str.maketrans(dict.fromkeys("\u2010\u2011\u2012\u2013\u2212", "-") | {"\u2019": "'"})


def signs(text: str) -> bytes:
    """Return the signs of a text that mean something, each with the letter or digit that follows it, in order.

    These are currency, percent, mathematics, arrows and emoji wherever they are, marks between two digits, a minus or a
    point in front of a number, `*`, `/` and `^` between two words, and `!` in front of a word or of `=`. `+`, `<`, `=`
    and `>` count in rows of up to three. A row of `>` at the start of a line is a quote. All others are punctuation or
    layout, which includes line breaks.
    """
    found = native.signs(text.encode("utf-8", "surrogatepass")).decode() if native else found_slowly(text)
    if not found.isascii():
        found = unicodedata.normalize("NFKC", found).translate(_WRITTEN_AS)
    return found.lower().encode()


def found_slowly(text: str) -> str:
    """Return what `native.signs` finds."""
    return "".join("".join(_SIGN.findall(text)).split())
