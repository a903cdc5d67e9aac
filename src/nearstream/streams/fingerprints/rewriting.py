"""What happens to a text before its normal form is made: plain spelling, masks of mail, notices."""

import re
from dataclasses import replace
from hashlib import blake2b
from typing import Final

from nearstream.streams.fingerprints.normalize import nfkc, normalize, without_unsafe
from nearstream.streams.fingerprints.notices import Split, split_notices
from nearstream.streams.fingerprints.parameters import TextRules
from nearstream.streams.fingerprints.plain_words import plain_words
from nearstream.streams.fingerprints.spelling import as_meant, joined, writes_umlauts

_NAME = r"[\w'.-]{1,40}"
# One pass of one pattern, whose quantifiers all have a bound. Nothing begins within a word, which is found out first.
_PERSONAL = re.compile(
    r"(?<![\w.+%-])(?=\w)(?:"
    r"(?:https?://(?:www\.)?|www\.)(?P<host>[^\s/?#<>\"']{1,255})[^\s<>\"']{0,2048}"
    r"|(?P<address>[\w.+%-]{1,64}+@)[\w.-]{1,255}"
    r"|(?P<token>(?=[^\W0-9]{0,63}+(?>(?:-[^\W0-9]{0,63}+){0,8})[0-9])[\w-]{8,2048}+)"
    r"|(?P<greeting>(?:dear|hello|hi|hey|hallo|liebe[rs]?|sehr geehrte[rs]?(?: (?:frau|herr))?|bonjour|ch[eè]re?|hola"
    r"|estimad[oa]|ciao|gentile|beste|geachte)[ \t]{1,4})"
    rf"(?:{_NAME}(?:[ \t]{{1,2}}{_NAME}){{0,2}}(?=[ \t]{{0,2}}(?:[,!:;\r\n]|\Z))|{_NAME})"
    r")|[0-9]{1,64}"
)
# What a line with a greeting or a URL contains, in lower case and with spaces for tabs. It may contain it without one.
_LINE_HINTS = (
    *("dear ", "hello ", "hi ", "hey ", "hallo ", "liebe", "geehrte", "bonjour ", "cher", "ch\u00e8r", "hola "),
    *("estimad", "ciao ", "gentile ", "beste ", "geachte ", "://", "www."),
)
_INSIDE = "://"  # the only one of these that may follow a letter
_PIECE_HINT = re.compile("[0-9@]")
_PIECE_END = re.compile(r"[ \n]|\Z")
_SEARCHED_CHARACTERS = 32 * 1024  # while all other threads wait
_MATCH_MAX_CHARACTERS = 4096  # more than any match of the pattern has, with what it looks at behind it
WITHOUT_NOTICES: Final = "mail/2"
UMLAUTS: Final = "plain/5 umlauts"  # the spelling of a text in a language with umlauts
_WORD_LETTERS = 12  # fewer than a window has bytes, so that this word makes no two mails alike
_LETTERS = str.maketrans("0123456789abcdef", "abcdefghijklmnop")  # digits are masked


def mask_personal(text: str, rules: TextRules) -> str:
    """Return a text in lower case, with all that is personal in mail masked.

    A URL becomes `url` and its host, a mail address `email`, a token of at least 8 characters with a digit `tok`, any
    other number `0`, and up to three words after a greeting `name`.
    """
    if not text.isascii():
        text = nfkc(without_unsafe(text, rules.mark_run))
    return _mask(text.lower())


def _mask(text: str) -> str:
    """Return what the pattern makes of a text.

    Most of its time would be spent on words where it cannot match. So it is tried on lines with a hint of a greeting or
    a URL, and elsewhere on pieces between spaces with a digit or an `@`. No match goes beyond its line, and only a
    greeting beyond its piece.
    """
    parts: list[str] = []
    done = 0
    for start in _hinted_lines(text):
        _mask_pieces(text, done, start, parts)
        done = text.find("\n", start) + 1 or len(text)
        _mask_all(text[start:done], parts)
    _mask_pieces(text, done, len(text), parts)
    return "".join(parts)


def _hinted_lines(text: str) -> list[int]:
    """Return where lines begin that may have a greeting or a URL, in order."""
    spaced = text.replace("\t", " ")
    starts = set()
    for hint in _LINE_HINTS:
        at = spaced.find(hint)
        while at >= 0:
            searched = at
            if hint == _INSIDE or not spaced[at - 1 : at].isalnum():
                starts.add(spaced.rfind("\n", 0, at) + 1)
                searched = spaced.find("\n", at)
            at = spaced.find(hint, searched + 1) if searched >= 0 else -1
    return sorted(starts)


def _mask_pieces(text: str, start: int, stop: int, parts: list[str]) -> None:
    """Append a part of a text that has neither greetings nor URLs, masked."""
    while hint := _PIECE_HINT.search(text, start, stop):
        at = hint.start()
        begin = max(text.rfind(" ", start, at), text.rfind("\n", start, at), start - 1) + 1
        end = _PIECE_END.search(text, at, stop)
        parts.append(text[start:begin])
        start = end.start() if end else stop
        _mask_all(text[begin:start], parts)
    parts.append(text[start:stop])


def _mask_all(text: str, parts: list[str]) -> None:
    """Append a text with each match of the pattern masked."""
    if len(text) <= _SEARCHED_CHARACTERS:
        parts.append(_PERSONAL.sub(_masked, text))
        return
    at = 0
    while at < len(text):
        end = at + _SEARCHED_CHARACTERS
        found = _PERSONAL.search(text, at, end + _MATCH_MAX_CHARACTERS)
        if found is None or found.start() >= end:
            parts.append(text[at:end])
            at = end
        else:
            parts += text[at : found.start()], _masked(found)
            at = found.end()


def _masked(found: re.Match[str]) -> str:
    kind = found.lastgroup
    if kind == "host":
        return f" url {found['host']} "
    if kind == "address":
        return " email "
    if kind == "token":
        return "tok"
    return f"{found['greeting']}name" if kind else "0"


def rewritten(text: str, rules: TextRules) -> str:
    """Return a text in its plain spelling, masked and without notices, as the rules say."""
    own, common = own_text(text, rules)
    rules = rules_for(own, rules)
    word = _word_for(common, rules)
    plain = plain_text(own, rules)
    return f"{plain}\n{word}" if word else plain


def rules_for(text: str, rules: TextRules) -> TextRules:
    """Return the rules for all parts of a text, whose language is that of the whole."""
    return replace(rules, spelling=UMLAUTS) if rules.spelling and writes_umlauts(text) else rules


def own_text(text: str, rules: TextRules) -> Split:
    """Split the notices from a text, if the rules leave them out."""
    return split_notices(text) if rules.masks == WITHOUT_NOTICES else Split(text)


def plain_text(text: str, rules: TextRules) -> str:
    """Return a text or a part of it in its plain spelling, masked."""
    if rules.spelling:
        # Python has another lower case of this letter at the end of a word.
        plain = plain_words(as_meant(text), rules).replace("\u03a3", "\u03c3")
        text = joined(plain, text, has_umlauts=rules.spelling == UMLAUTS)
    return mask_personal(text, rules) if rules.masks else text


def _word_for(common: str, rules: TextRules) -> str:
    """Return a word that represents notices, so that other notices make another text."""
    form = normalize(plain_text(common, rules), rules).data if common else b""
    return blake2b(form).hexdigest().translate(_LETTERS)[:_WORD_LETTERS] if form else ""
