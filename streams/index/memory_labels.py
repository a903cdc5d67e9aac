"""Labels in dictionaries."""

from collections import Counter, OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import islice

from nearstream.streams.index.contract import Position
from nearstream.streams.index.labels import LABELS_CAP, LabelCounts, Labelling
from nearstream.streams.index.memory_families import Families
from nearstream.streams.index.memory_states import States

_DROPS = 2  # labels that are looked at with each new one, whether they have expired


@dataclass(frozen=True)
class _Given:
    """A label with the offset of its record, and when the index got it."""

    labelling: Labelling
    offset: int
    stored_ms: int


class Labels:
    """The labels of documents, whether or not these are stored."""

    def __init__(self, states: States, families: Families, retention_ms: int) -> None:
        """Take the states and families that the labels are about."""
        self._states = states
        self._families = families
        self._retention_ms = retention_ms
        self._given: OrderedDict[str, _Given] = OrderedDict()  # by document key, the one stored first in front

    def put(self, document_key: str, labelling: Labelling, position: Position | None) -> None:
        """Set or take back a label, unless a later record has done so."""
        self._drop_expired()
        known = self._given.get(document_key)
        if known is not None and position is not None and position.offset < known.offset:
            return
        given_ms = min(labelling.given_ms, self._states.now_ms)
        if known is not None and (known.labelling.label, known.labelling.weight) == (labelling.label, labelling.weight):
            given_ms = min(given_ms, known.labelling.given_ms)
        offset = position.offset if position else 0
        self._given[document_key] = _Given(replace(labelling, given_ms=given_ms), offset, self._states.now_ms)
        self._given.move_to_end(document_key)

    def count(self, family: int, before_ms: int, hidden: Callable[[int], bool]) -> LabelCounts:
        """Return the labels of a family that were given up to a time.

        Args:
            family: Number of its founder.
            before_ms: The time, in milliseconds since 1970.
            hidden: Returns whether a state has expired.
        """
        sums: Counter[str] = Counter()
        for given in islice(self._given_in(family, hidden), LABELS_CAP):
            if given.label is not None and given.given_ms <= before_ms:
                sums[given.label] += given.weight
        return LabelCounts(sums["spam"], sums["ham"])

    def _given_in(self, family: int, hidden: Callable[[int], bool]) -> list[Labelling]:
        """Return the labels of the documents that are in a family now."""
        found = []
        for document_key, given in self._given.items():
            number = self._states.registry.get(document_key, 0)
            if given.labelling.label and self._families.lives(number) and not hidden(number):
                found += [given.labelling] if self._families.of(number) == family else []
        return found

    def _drop_expired(self) -> None:
        """Drop labels of documents that are not stored, a retention after they were given."""
        for document_key, given in list(islice(self._given.items(), _DROPS)):
            if not self._retention_ms or given.stored_ms + self._retention_ms >= self._states.now_ms:
                return
            if self._families.lives(self._states.registry.get(document_key, 0)):
                self._given.move_to_end(document_key)
            else:
                del self._given[document_key]
