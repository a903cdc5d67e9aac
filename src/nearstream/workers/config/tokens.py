"""Bearer tokens of our servers, and what those of the HTTP API may do."""

import re
from collections.abc import Collection
from dataclasses import dataclass, field

from nearstream.schemas.documents.document import NAME_PATTERN, REFERENCES_MAX

TOKENS = 256
_MIN_CHARACTERS = 16
_RATES = (0.1, 100_000.0)  # requests a second
_EVERY, _BARE, _AGAINST = "*", "bare", "against="


@dataclass(frozen=True)
class ApiToken:
    """A token of the HTTP API, and what a request with it may do."""

    token: str = field(default="", repr=False)  # the token. Empty: none is needed
    collections: frozenset[str] = frozenset()  # The collections that it is for. Empty: all.
    rate: float = 0.0  # Most requests a second. 0: no limit.
    is_bare: bool = False  # it may only ask whether a signature is related to a document, and is answered yes or no
    # Other collections with which each of its questions is compared too, at most 4.
    against: frozenset[str] = frozenset()

    def may_name(self, collection: str, against: Collection[str] = ()) -> bool:
        """Return whether a request may name a collection, and others to compare with."""
        may_see = self.collections | self.against
        return not self.collections or (collection in self.collections and may_see.issuperset(against))


def wrong_token(text: str) -> str:
    """Return what is expected of a token that no request could send, or that is too short, else an empty text."""
    token = text.strip()
    if text and len(token) < _MIN_CHARACTERS:
        return f"expected at least {_MIN_CHARACTERS} characters"
    return "" if re.fullmatch(r"[!-~]*", token) else "expected a token in ASCII without blanks"


def wrong_tokens(text: str) -> str:
    """Return what is expected of tokens that cannot be read, else an empty text."""
    try:
        parse_tokens(text)
    except ValueError as error:
        return str(error)
    return ""


def parse_tokens(text: str) -> tuple[ApiToken, ...]:
    """Read the tokens of the HTTP API: one a line, with its collections and its rate if it has them.

    A line is `token`, `token collection,collection`, `token collection,collection rate` or `token
    collection,collection rate bare`, with `*` for all collections. A last word `against=collection,collection` names
    references. Empty lines and those that begin with `#` are left out.
    """
    lines = [(at, line.split()) for at, line in enumerate(text.splitlines(), 1) if not line.startswith("#")]
    tokens = tuple(_token(at, words) for at, words in lines if words)
    if text and not tokens:
        raise ValueError("expected a token, found comments and empty lines alone")
    if len(tokens) > TOKENS or len({each.token for each in tokens}) < len(tokens):
        raise ValueError(f"expected at most {TOKENS} tokens, each once")
    return tokens


def _token(line: int, words: list[str]) -> ApiToken:
    has_references = len(words) > 1 and words[-1].startswith(_AGAINST)
    against = frozenset(words.pop().removeprefix(_AGAINST).split(",")) if has_references else frozenset()
    is_bare = words[3:] == [_BARE]
    words = words[:3] if is_bare else words
    token, collections, rate = [*words, *[_EVERY, "0"][len(words) - 1 :]][:3] if len(words) < 4 else ("", "", "")
    if wrong_token(token):
        raise ValueError(f"line {line}: {wrong_token(token)}")
    names = frozenset() if collections == _EVERY else frozenset(collections.split(","))
    if not token or not all(re.search(NAME_PATTERN, name) for name in names):
        raise ValueError(f"line {line}: expected token, collections and rate, separated by spaces")
    if len(against) > REFERENCES_MAX or not all(re.search(NAME_PATTERN, name) for name in against):
        raise ValueError(f"line {line}: expected {_AGAINST} with at most {REFERENCES_MAX} collections, and no blanks")
    asks = _rate(line, rate)
    if is_bare and not asks:
        raise ValueError(f"line {line}: expected a rate above 0 for a token that is {_BARE}")
    return ApiToken(token, names, asks, is_bare, against)


def _rate(line: int, text: str) -> float:
    low, high = _RATES
    try:
        rate = float(text)
    except ValueError:
        rate = -1.0
    if rate and not low <= rate <= high:
        raise ValueError(f"line {line}: expected a rate of {low:g} to {high:g} requests a second")
    return rate
