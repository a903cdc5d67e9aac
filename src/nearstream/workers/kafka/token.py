"""A token to log in to Kafka with."""

import re
from dataclasses import dataclass

from nearstream.workers.kafka.errors import TokenRefusedError

MAX_BYTES = 64 * 1024
USED_SHARE = 0.8  # of its life


@dataclass(frozen=True)
class Token:
    """A token, and for how many seconds from now on new connections may be given it."""

    text: str
    seconds: float = 0.0


def checked(text: str, expected: str) -> str:
    """Return a text that can be sent as a token.

    Raises:
        TokenRefusedError: It cannot. The message is `expected`.
    """
    if not re.fullmatch(r"[!-~]+", text):
        raise TokenRefusedError(expected)
    return text
