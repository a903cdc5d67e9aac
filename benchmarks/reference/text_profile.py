"""The text profile of Apache Nutch.

Source: Julien Nioche in a comment on "Scaling Jaccard Distance for Document Deduplication" (LingPipe blog), compared
with Nutch's TextProfileSignature. The comment says that characters are removed, but they separate tokens. The quantum
is at least 2, not higher than 2, and lines are joined by newlines. Ties are sorted by token here, as newer Nutch does.
"""

import re
from collections import Counter
from hashlib import md5

_TOKEN = re.compile(r"[^\W_]{3,}")


def text_profile(text: str) -> str:
    """Return the frequent tokens of a text with their counts, rounded down. A text without tokens has none."""
    counts = Counter(_TOKEN.findall(text.lower()))
    if not counts:
        return ""
    largest = max(counts.values())
    quantum = max((largest + 50) // 100, 2 if largest > 1 else 1)
    rounded = {token: count // quantum * quantum for token, count in counts.items()}
    lines = sorted((-count, token) for token, count in rounded.items() if count >= quantum)
    return "\n".join(f"{token} {-count}" for count, token in lines)


def profile_digest(text: str) -> str | None:
    """Return the MD5 of the profile in hex. None: the profile is empty, and all such texts would be alike."""
    profile = text_profile(text)
    return md5(profile.encode(), usedforsecurity=False).hexdigest() if profile else None
