"""What the protocol asks of what knows the documents. It looks into none itself."""

from collections.abc import Sequence
from typing import Protocol

from nearstream.streams.matching.protocol.case import Case, Compared
from nearstream.streams.matching.protocol.decision import Decision
from nearstream.streams.matching.protocol.known import Known
from nearstream.streams.store.messages import Join


class Comparing(Protocol):
    """What compares documents."""

    def compare(self, case: Case, numbers: Sequence[int], known: Known) -> Sequence[Compared]:
        """Compare a document with states whose records are known, and return the related ones."""


class Judge(Comparing, Protocol):
    """What knows the documents."""

    def decision(self, case: Case, founder: int, known: Known) -> Decision:
        """Return what is to be decided about a document that joins, or founds, a family."""

    def shortened(self, case: Case, founder: bytes) -> bytes:
        """Return the record of a copy as a patch of that of the founder of its family, or nothing."""

    def join(self, case: Case, founder: int, known: Known) -> Join:
        """Return the message with which a document joins a family."""

    def hint(self, case: Case) -> int:
        """Return the likely original of a document, or 0. It may be in the same batch."""

    def learn(self, case: Case, representative: int) -> None:
        """Remember who represents the family of a document."""
