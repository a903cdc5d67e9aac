"""Removals in dictionaries: the last one of each document, and the answers to all."""

from collections import OrderedDict

from nearstream.schemas.signature import Origin
from nearstream.streams.index.contract import REMOVAL_MS, Admission, Admitted, Status

_STALE = Admitted(Status.STALE)
_ANSWERS_MS = 604_800_000  # answers to removals are kept for a week, in case their records are redelivered


class Removals:
    """What is remembered about removals."""

    def __init__(self) -> None:
        """Remember nothing."""
        # By partition and offset: the time of a removal, and the answer to it.
        self._answers: OrderedDict[tuple[int, int], tuple[int, Admitted]] = OrderedDict()
        # By document key: the time of the last removal, and its record on `documents`.
        self._last: OrderedDict[str, tuple[int, Origin]] = OrderedDict()

    def answer(self, own: tuple[int, int]) -> Admitted:
        """Return the answer to the removal at a position, or that nothing is left of it."""
        return self._answers.get(own, (0, _STALE))[1]

    def keep_answer(self, own: tuple[int, int], answer: Admitted, now_ms: int) -> None:
        """Keep the answer to the removal at a position, and drop those that are too old."""
        self._answers[own] = now_ms, answer
        while next(iter(self._answers.values()))[0] < now_ms - _ANSWERS_MS:
            self._answers.popitem(last=False)

    def later(self, admission: Admission, now_ms: int) -> Origin | None:
        """Return the removal of a document if its record does not come before the record of this admission."""
        removed_ms, removal = self._last.get(admission.document_key, (0, None))
        origin = admission.origin
        if removal is None or origin is None or removed_ms + REMOVAL_MS < now_ms:
            return None
        return removal if origin.is_before(removal) else None

    def remember(self, admission: Admission, now_ms: int) -> None:
        """Remember a removal, so that documents that were sent before it are refused."""
        if admission.removal is not None:
            self._last.pop(admission.document_key, None)
            self._last[admission.document_key] = now_ms, admission.removal
        while self._last and next(iter(self._last.values()))[0] + REMOVAL_MS < now_ms:
            self._last.popitem(last=False)
