"""The signs of a text that mean something, found by one expression."""

import re

# Signs that always mean something: $ % &, and outside ASCII currency, degrees, per mille, mathematics, arrows, pictures
# and Braille. Boxes, blocks and geometric shapes are layout.
_ALWAYS = (
    r"$%&\u00a2-\u00a5\u00ac\u00b0\u00b1\u00d7\u00f7\u058f\u060b\u07fe\u07ff\u09f2\u09f3\u09fb\u0af1\u0bf9\u0e3f\u17db"
    r"\u2030\u2031\u20a0-\u20c0\u2190-\u23ff\u2600-\u2bff\ua838\uff04-\uff06\uff0b\uff1c-\uff1e\uffe0-\uffe6"
    r"\U00011fdd-\U00011fe0\U0001e2ff\U0001ecb0\U0001f000-\U0001faff"
)
# One private code point is a bullet or an icon. Several in a row are the text of a font of its own.
_PRIVATE = "\ue000-\uf8ff\U000f0000-\U0010fffd"
_MATH = "+<=>"
_DASHES = r"\u2010-\u2013\-"
_MARKS = rf".,:/'*^\u066b\u066c\u2019\u2044{_DASHES}"
# A class comes first, because a search for a class is fast. What is around the sign is looked at behind it.
_SIGN = re.compile(
    rf"[{_ALWAYS}{_PRIVATE}{_MATH}{_MARKS}#!](?:"
    rf"(?<=[{_ALWAYS}])"
    rf"|(?<=[{_MATH}])(?<![{_MATH}].)(?<!\n>)(?<!\A>)[{_MATH}]{{0,2}}(?![{_MATH}])"
    rf"|(?<=\d[{_MARKS}])(?=\d)"
    rf"|(?<=[.{_DASHES}])(?<![\w.,')\]\-].)(?=\d)"
    r"|(?<=\w[ \n][/^])(?=[ \n]\w)|(?<=\w[*^])(?=\w)"
    r"|(?<=\w\#)(?!\w)"
    rf"|(?<=[{_PRIVATE}])[{_PRIVATE}]{{2,}}"
    r"|(?<=!)(?:(?==)|(?<![\w!?].)(?=[\w(]))"
    r")\s*\w?",
    re.DOTALL | re.ASCII,
)


def found(text: str) -> str:
    """Return these signs and what follows them as they stand in the text."""
    return "".join("".join(_SIGN.findall(text)).split())
