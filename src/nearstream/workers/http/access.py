"""Check which requests a token may send to the HTTP API, and how often."""

import hmac
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from nearstream.workers.config.tokens import ApiToken

_BURST_SECONDS = 1.0  # a token that was not used for this long may ask for as many requests at once


class ForbiddenError(Exception):
    """The token is not for this collection."""


@dataclass(frozen=True)
class Access:
    """What a request may do."""

    collections: frozenset[str] = frozenset()  # The collections that it may name. Empty: all.
    is_bare: bool = False  # it may only ask whether a signature is related to a document
    against: frozenset[str] = frozenset()  # other collections with which each of its questions is compared too

    def require(self, collection: str, against: Collection[str] = ()) -> None:
        """Require that a request may name a collection, and others to compare with.

        Raises:
            ForbiddenError: It may not.
        """
        if self.collections and not (collection in self.collections and self._may_see(against)):
            raise ForbiddenError

    def _may_see(self, against: Collection[str]) -> bool:
        return (self.collections | self.against).issuperset(against)


@dataclass
class _Meter:
    """Requests that a token may make now, by its rate."""

    token: ApiToken
    left: float
    at: float

    def may_ask(self, now: float) -> bool:
        """Count a request, unless there were too many."""
        if not self.token.rate:
            return True
        most = max(1.0, _BURST_SECONDS * self.token.rate)
        self.left, self.at = min(most, self.left + (now - self.at) * self.token.rate), now
        if self.left < 1:
            return False
        self.left -= 1
        return True


class Gate:
    """Knows the tokens, and counts the requests of each."""

    def __init__(self, tokens: Sequence[ApiToken]) -> None:
        """Take the tokens. Without any, everybody may ask everything."""
        self._meters = [_Meter(token, float("inf"), 0.0) for token in tokens]

    def access(self, authorization: str, now: float) -> tuple[Access | None, bool]:
        """Return what a request may do, None without a token, and whether it comes too early.

        Args:
            authorization: The header of the request.
            now: Seconds of a clock that only goes forward.
        """
        if not self._meters:
            return Access(), False
        given = authorization.encode("utf-8", "surrogateescape")
        # All tokens are compared, so that the time of the answer does not tell which one fits.
        fitting = [each for each in self._meters if hmac.compare_digest(given, b"Bearer " + each.token.token.encode())]
        if not fitting:
            return None, False
        (meter,) = fitting
        return Access(meter.token.collections, meter.token.is_bare, meter.token.against), not meter.may_ask(now)
