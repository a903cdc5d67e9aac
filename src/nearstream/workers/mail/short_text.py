"""Replace the text of a message that is too short for shingles by a digest."""

import re
from collections.abc import Iterable

from nearstream.streams.fingerprints.hashing import HashKey
from nearstream.streams.fingerprints.normalize import NormalForm, normalize
from nearstream.streams.fingerprints.notices import split_notices
from nearstream.streams.fingerprints.parameters import MIN_SPACELESS_BYTES, MIN_WORDS, TextRules
from nearstream.streams.fingerprints.rewriting import rewritten

_RULES = TextRules(spelling="plain/2", masks="mail/1")
_HEAD_CHARACTERS = 4_096
_ENCODED = re.compile(r"(?<!\S)(?!\S{0,12}://)\S{40,}")
_ENCODED_MIN_CHARACTERS = 100  # more than a token has that each recipient gets
# The normal form of mail masks digits, so the digest is written in letters.
_LETTERS = str.maketrans("0123456789abcdef", "abcdefghijklmnop")


def short_message_text(subject: str, text: str, attachments: Iterable[bytes], key: HashKey) -> str:
    """Return a text that is equal for short messages of equal Subject, body and attachments.

    A few words like "thank you" say nothing about the message, so a short one is a copy only of a message that also
    has its Subject and its attachments. What is personal is masked first, as in the scheme `mail`. The result is too
    short for shingles, so it is found by its digest alone.

    Args:
        subject: The Subject.
        text: The text.
        attachments: Digests of what is no text.
        key: The deployment's key.

    Returns:
        An empty text if the message has nothing but its Subject and notices, which alone make no copy.
    """
    form, title, others = _masked_form(text), _masked_form(subject), b"".join(attachments)
    if not (others or _masked_form(split_notices(text).own).data):
        return ""
    digest = key.digest(title.data + b"\0" + form.data + (b"\0" + others if others else b""))
    return f"short message {digest.hex().translate(_LETTERS)}"


def encoded_text(text: str) -> str:
    """Return what of a text is encoded, such as base64 in a quote. Masks hide it, and no person reads it."""
    found = _ENCODED.findall(text)
    return "".join(found) if sum(map(len, found)) >= _ENCODED_MIN_CHARACTERS else ""


def is_short(text: str) -> bool:
    """Return whether a masked text without notices is too short for shingles."""
    own = split_notices(text).own
    return _is_short(_masked_form(own[:_HEAD_CHARACTERS])) and _is_short(_masked_form(own))


def _masked_form(text: str) -> NormalForm:
    return normalize(rewritten(text, _RULES))


def _is_short(form: NormalForm) -> bool:
    if form.spaceless:
        return len(form.data) < MIN_SPACELESS_BYTES
    return form.data.count(b" ") + 1 < MIN_WORDS
