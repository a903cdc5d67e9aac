"""The collection of the mail of each domain."""

import re
from functools import lru_cache

from nearstream.schemas.documents.document import NAME_PATTERN

_DOMAINS_MAX = 10_000


def wrong_domains(text: str) -> str:
    """Return what is expected of domains that cannot be read, else an empty text."""
    lines = [line.split() for line in text.splitlines() if not line.startswith("#")]
    is_read = all(not words or (len(words) == 2 and re.search(NAME_PATTERN, words[1])) for words in lines)
    return (
        "" if is_read and len(lines) <= _DOMAINS_MAX else f"expected {_DOMAINS_MAX} lines `domain collection` at most"
    )


@lru_cache(1)
def _collections(text: str) -> dict[str, str]:
    lines = (line.split() for line in text.splitlines() if not line.startswith("#"))
    return {words[0].lower(): words[1] for words in lines if words}


def collection_of(address: str, domains: str) -> str | None:
    """Return the collection of the domain of a mail address, None if no line names the domain."""
    return _collections(domains).get(address.strip().strip("<>").rpartition("@")[2].lower())
