"""An arriving document on its way to a verdict."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from nearstream.schemas.signature import Signature
from nearstream.streams.counterpart import Compared, joined
from nearstream.streams.index.candidate import Candidate
from nearstream.streams.index.contract import Admission, Admitted
from nearstream.streams.index.family import Settled


@dataclass(eq=False)
class Case:
    """An arriving document on its way to a verdict.

    Attributes:
        arriving: Its signature, as an index keeps it.
        admission: How it was admitted.
        answer: The answer of the index.
        looked_up: Numbers of the earlier documents that it was compared with.
        compared: The related ones, the best first.
        joins: The one whose family is joined.
        entered: It has entered the buckets that it left out.
        turns: How many times the index did not let it join a family.
        settled: The answer to its settlement.
    """

    arriving: Signature
    admission: Admission
    answer: Admitted
    looked_up: set[int] = field(default_factory=set)
    compared: list[Compared] = field(default_factory=list)
    joins: Compared | None = None
    entered: bool = False
    turns: int = 0
    settled: Settled | None = None

    @property
    def has_to_settle(self) -> bool:
        """Whether a replay could find something else."""
        return bool(self.compared or self.answer.presumed or self.answer.may_change)

    @property
    def has_to_enter(self) -> bool:
        """Whether the presumption is denied, but the buckets that it left out are not entered yet.

        It is confirmed if the document joins the presumed one, or is a copy of it that keeps its family.
        """
        presumed, joins = self.answer.presumed, self.joins
        copies = {each.candidate.number for each in self.compared if each.is_copy}
        confirmed = joins is not None and (
            joins.candidate.number == presumed or (joins.is_former and presumed in copies)
        )
        return bool(presumed) and not confirmed and not self.entered

    def add(self, related: Sequence[Compared]) -> None:
        """Add related documents, and choose again whose family is joined."""
        self.compared = sorted((*self.compared, *related), key=lambda compared: compared.rank)
        self.joins = joined(self.compared, self.answer.presumed)

    def renew(self, candidates: Sequence[Candidate]) -> None:
        """Note which documents that were compared before represent a family by now."""
        represents = {candidate.number for candidate in candidates if candidate.represents}
        self.compared = [
            replace(each, candidate=replace(each.candidate, represents=True))
            if each.candidate.number in represents
            else each
            for each in self.compared
        ]

    def refuse(self, number: int) -> None:
        """Choose another family than that of a document."""
        others = [replace(each, is_copy=False) if each.candidate.number == number else each for each in self.compared]
        self.compared = []
        self.add(others)

    def former_state(self) -> Compared | None:
        """Return the former state of the document, else the last one of its lineage, or None."""
        own = [compared for compared in self.compared if compared.is_former]
        if own:
            return own[0]
        lineage = [compared for compared in self.compared if compared.same_lineage]
        return max(lineage, key=lambda compared: compared.candidate.signature.order, default=None)

    def candidates(self) -> list[Candidate]:
        """Return the earlier documents to compare with."""
        previous = self.answer.previous
        if previous is not None and previous.signature.digest == self.arriving.digest:
            return []  # the replay of an unchanged document
        candidates = self.answer.candidates if previous is None else (previous, *self.answer.candidates)
        return self.not_looked_up(candidates)

    def not_looked_up(self, candidates: Sequence[Candidate]) -> list[Candidate]:
        """Return the documents to compare with that were not compared yet, each state once.

        Those of other collections are left out: a store may shorten keys, so that by chance two collections share a
        bucket.
        """
        own = (self.arriving.id, self.arriving.version)
        states = {
            (candidate.earlier.id, candidate.earlier.version): candidate
            for candidate in reversed(candidates)
            if candidate.earlier.collection == self.arriving.collection and candidate.number not in self.looked_up
        }
        return [candidate for state, candidate in reversed(states.items()) if state != own]


def incomplete(answer: Admitted) -> tuple[bool, bool]:
    """Return whether buckets were full, and whether candidates were left out."""
    return answer.full_buckets > 0, answer.cut
