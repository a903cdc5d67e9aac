"""Remembers which family the anchors of a document led to lately."""

from collections.abc import Sequence

Anchors = Sequence[bytes]


class Hints:
    """Numbers of documents by anchor, of which the last ones are remembered.

    Anchors are forgotten by the half, because to forget one for each that is added takes as long as to match by them.
    """

    def __init__(self, cap: int) -> None:
        """Remember at most this many anchors, and at least half as many."""
        self._half = cap // 2
        self._young: dict[bytes, int] = {}
        self._old: dict[bytes, int] = {}

    def learn(self, anchors: Anchors, number: int) -> None:
        """Remember that these anchors lead to the document with this number."""
        self._young.update(dict.fromkeys(anchors, number))
        if len(self._young) > self._half:
            self._old, self._young = dict(list(self._young.items())[-self._half :]), {}

    def numbers(self, anchors: Anchors) -> list[int]:
        """Return where anchors lead, for each that is known."""
        if self._young.keys().isdisjoint(anchors) and self._old.keys().isdisjoint(anchors):
            return []
        young, old = self._young.get, self._old.get
        return [number for anchor in anchors if (number := young(anchor) or old(anchor))]
