"""Mail as states of a conversation: the words of the sender alone, under the first message of the thread."""

import re
from email.message import Message

from nearstream.workers.mail import headers

_QUOTED_LINES = re.compile(r"^[ \t]{0,8}>.*\n?", re.MULTILINE)
_SIGNATURE = re.compile(r"^-- ?\r?$", re.MULTILINE)


def own_words(text: str) -> str:
    """Return a text without quoted lines, which begin with `>`, and without the signature, which follows `-- `."""
    signature = _SIGNATURE.search(text)
    return _QUOTED_LINES.sub("", text[: signature.start()] if signature else text)


def first_message(message: Message) -> str | None:
    """Return the id of the first message of a thread: the first in References, else in In-Reply-To, else its own.

    Returns:
        None if none of them can be the id of a document.
    """
    named = (headers.first_id(message, name) for name in ("references", "in-reply-to", "message-id"))
    return next((found for found in named if found), None)
