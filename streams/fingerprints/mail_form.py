"""The first step of the normal form of mail: what differs between personalised copies is masked."""

import re
import unicodedata

from nearstream.streams.fingerprints.normalize import without_unsafe
from nearstream.streams.fingerprints.parameters import TextRules

_NAME = r"[\w'.-]{1,40}"
# One pass of one pattern, whose quantifiers all have a bound. Nothing begins within a word, which is found out first.
_PERSONAL = re.compile(
    r"(?<![\w.+%-])(?=\w)(?:"
    r"(?:https?://(?:www\.)?|www\.)(?P<host>[^\s/?#<>\"']{1,255})[^\s<>\"']{0,2048}"
    r"|(?P<address>[\w.+%-]{1,64}+@)[\w.-]{1,255}"
    r"|(?P<token>(?=[^\W0-9]{0,63}+(?:-[^\W0-9]{0,63}+){0,8}+[0-9])[\w-]{8,2048}+)"
    r"|(?P<greeting>(?:dear|hello|hi|hey|hallo|liebe[rs]?|sehr geehrte[rs]?(?: (?:frau|herr))?|bonjour|ch[eè]re?|hola"
    r"|estimad[oa]|ciao|gentile|beste|geachte)[ \t]{1,4})"
    rf"(?:{_NAME}(?:[ \t]{{1,2}}{_NAME}){{0,2}}(?=[ \t]{{0,2}}(?:[,!:;\r\n]|\Z))|{_NAME})"
    r")|[0-9]{1,64}"
)


def mask_personal(text: str, rules: TextRules) -> str:
    """Return a text in lower case, with all that is personal in mail masked.

    A URL becomes `url` and its host, a mail address `email`, a token of at least 8 characters with a digit `tok`, any
    other number `0`, and up to three words after a greeting `name`.

    Args:
        text: Any text.
        rules: The longest run of marks that is kept.
    """
    if not text.isascii():
        text = unicodedata.normalize("NFKC", without_unsafe(text, rules.mark_run))
    return _PERSONAL.sub(_masked, text.lower())


def _masked(found: re.Match[str]) -> str:
    kind = found.lastgroup
    if kind == "host":
        return f" url {found['host']} "
    if kind == "address":
        return " email "
    if kind == "token":
        return "tok"
    return f"{found['greeting']}name" if kind else "0"
