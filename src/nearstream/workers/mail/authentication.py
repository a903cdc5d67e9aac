"""Find out which senders the receiving mail server has authenticated (RFC 8601)."""

import re
from email.message import Message

from nearstream.workers.mail.headers import raw_headers

_VALUE_MAX_CHARACTERS = 4_096
_QUOTED = re.compile(r'"(?:[^"\\]|\\.?)*"?', re.DOTALL)  # one that is not closed ends with the value
_COMMENT = re.compile(r"\([^()]*\)")
_LEFT_OVER = re.compile(r'["()\\]')
_METHODS = {"dmarc": ("header.from",), "dkim": ("header.d", "header.i")}  # of each the first property that is given


def is_authenticated(message: Message, domain: str, server: str) -> bool:
    """Return whether a server has authenticated a domain, by DMARC or DKIM.

    DKIM may also have passed for a parent of the domain. Of each method the topmost header of this server counts,
    because a server writes its results above those that a sender may have forged. Quoted strings and comments may hold
    what a sender has chosen, so they are left out.
    """
    seen = set[str]()
    for value in raw_headers(message, "authentication-results", _VALUE_MAX_CHARACTERS):
        plain = _COMMENT.sub(" ", _QUOTED.sub("", value)).lower()
        name, *results = plain.split(";")
        if name.split()[:1] != [server.lower()]:
            continue
        if _LEFT_OVER.search(plain):
            return False
        found = [_words(each) for each in results]
        for method, properties in _METHODS.items():
            own = [words for words in found if words[:1] and words[0].partition("=")[0] == method]
            if method not in seen and any(_passes(words, method, properties, domain.lower()) for words in own):
                return True
            seen |= {method} if own else set()
    return False


def _words(result: str) -> list[str]:
    """Return the method with its result, and the properties, without blanks around `=`."""
    return "=".join(part.strip() for part in result.split("=")).split()


def _passes(words: list[str], method: str, properties: tuple[str, ...], domain: str) -> bool:
    said = dict(word.split("=", 1) for word in words if "=" in word)
    name = next((said[each].rpartition("@")[2] for each in properties if each in said), "")
    is_above = method == "dkim" and "." in name and domain.endswith(f".{name}")
    return said.get(method) == "pass" and (domain == name or is_above)
