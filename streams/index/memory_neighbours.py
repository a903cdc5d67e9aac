"""Neighbours in dictionaries: which earlier documents are worth a comparison."""

from collections.abc import Callable, Container
from dataclasses import replace

from nearstream.schemas.signature import Signature
from nearstream.streams.estimates.comparing import Unpacked
from nearstream.streams.index.candidate import RARE_KEYS, RARE_PART, Candidate, in_order
from nearstream.streams.index.contract import BEST, COMMON_READS, ENOUGH, READS, IndexLimits
from nearstream.streams.index.family import FAMILY_CANDIDATES, PRESUMED_PERCENT
from nearstream.streams.index.memory_buckets import Buckets, Seen, Shared
from nearstream.streams.index.memory_families import Families
from nearstream.streams.index.memory_states import States
from nearstream.streams.signing.scheme import Keys


class Neighbours:
    """What the buckets say about a document."""

    def __init__(self, limits: IndexLimits, buckets: Buckets, states: States, families: Families) -> None:
        """Take what an index consists of."""
        self._limits = limits
        self._buckets = buckets
        self._states = states
        self._families = families

    def twin(self, signature: Signature, keys: Keys) -> int:
        """Return the oldest living document with an equal text that is young enough to represent it, or 0."""
        states, families = self._states, self._families
        for number in self._buckets.entries("digest", keys.digest):
            state = states.by_number.get(number)
            if state is None or state.dead or state.signature.digest != signature.digest or states.is_aging(number):
                continue
            representative = families.representative(families.of(number)) or number
            if families.has_all_keys(number) and not states.is_aging(representative):
                return number
        return 0

    def presumed(self, seen: Seen, found: list[int], keys: Keys) -> int:
        """Return the young representative with which a document shares most of the anchors of both, or 0."""
        best, best_share = 0, 0.0
        for number in found:
            shared, most = seen.shared[number].anchors, max(len(keys.anchors), self._states.by_number[number].anchors)
            share = shared / max(most, 1)
            if 100 * shared < PRESUMED_PERCENT * most or not most or (share, -number) <= (best_share, -best):
                continue
            stands = self._families.represents(number) and self._families.has_all_keys(number)
            if stands and not self._states.is_aging(number):
                best, best_share = number, share
        return best

    def left_out(self, presumed: int, found: list[int]) -> Callable[[tuple[int, ...]], bool]:
        """Return a function that says whether a document leaves out a bucket with these entries."""
        if not presumed:
            return lambda _: False
        family = self._families.of(presumed)
        members = {number for number in found if self._families.of(number) == family}
        return lambda entries: presumed in entries or sum(entry in members for entry in entries) >= FAMILY_CANDIDATES

    def shortlist(self, seen: Seen, own: int, own_key: str, keys: Keys, limit: int) -> tuple[list[int], bool]:
        """Return up to `2 * limit` live neighbours, those of the largest weight first.

        At most `COMMON_READS` of them share nothing but text that many documents have.
        All digest and lineage matches come in addition. A dead neighbour leads to the representative of its family.
        The second value says whether some neighbours were left out.
        """
        found: list[int] = []
        room, reads, common = 2 * limit, 0, 0
        for neighbour in seen.ranked():
            shared = seen.shared[neighbour]
            is_common = not (shared.named or self._is_telling(shared, len(keys.anchors)))
            if is_common and common == COMMON_READS:
                seen.may_change = True
                continue
            if reads == READS:
                return found, True
            reads += 1
            number = self._living(seen, neighbour, own)
            state = self._states.by_number.get(number)
            if state is not None and state.document_key != own_key:
                common += is_common
                room -= not seen.shared[number].named
                if room < 0:
                    return found, True
                found.append(number)
        return found, False

    def _living(self, seen: Seen, neighbour: int, own: int) -> int:
        """Return a neighbour, or the document that represents it now, or 0. A dead neighbour without one is gone."""
        state = self._states.by_number.get(neighbour)
        if state is not None and not 0 < state.dead <= own:
            return neighbour
        heir = self._families.heir(neighbour)
        if state is None and not heir:
            seen.gone.add(neighbour)
        if not heir or heir in seen.shared or heir >= own:
            return 0
        seen.may_change = True  # another may take its place
        seen.shared[heir] = replace(seen.shared[neighbour], by_digest=False, by_lineage=False)
        return heir

    def pick(self, seen: Seen, found: list[int], keys: Keys, limit: int) -> tuple[tuple[Candidate, ...], bool]:
        """Return the best of the living neighbours found.

        The second value says whether the limit left some out.
        """
        fewer = {number: min(len(keys.anchors), self._states.by_number[number].anchors) for number in found}
        shares = {number: seen.shared[number].share(fewer[number]) for number in found}
        ranked = sorted(found, key=lambda number: (not seen.shared[number].named, -shares[number], number))
        best: list[int] = []
        others, room, is_cut = 0, dict[int, int](), False
        for number in ranked:
            shared = seen.shared[number]
            may_be_named = (
                shared.named or others < BEST or (shares[number] >= ENOUGH and self._is_telling(shared, fewer[number]))
            )
            if may_be_named and self._is_of_the_few(number, shared, room, shares):
                others += not shared.named
                if others > limit:
                    is_cut = True
                    break
                best.append(number)
        seen.may_change |= len(best) < len(found)
        return in_order(self.candidate(number, seen.shared[number]) for number in best), is_cut

    def _is_of_the_few(self, number: int, shared: Shared, room: dict[int, int], found: Container[int]) -> bool:
        """Return whether a neighbour is the representative of its family, or one of the best of the others.

        States of one lineage are not limited. `room` counts by family how many may follow.
        """
        families = self._families
        if not self._limits.events_per_family or shared.by_lineage or families.represents(number):
            return True
        family = families.of(number)
        if family not in room:
            representative = families.representative(family)
            follows = representative in found and families.represents(representative)
            room[family] = FAMILY_CANDIDATES - follows
        room[family] -= 1
        return room[family] >= 0

    def candidate(self, number: int, shared: Shared) -> Candidate:
        """Return a state as a candidate that shares these keys."""
        state = self._states.by_number[number]
        found_by = (shared.by_digest, shared.by_lineage, shared.in_full_bucket)
        represents = self._families.represents(number)
        return Candidate(
            number,
            Unpacked(state.signature),
            shared.bands,
            shared.anchors,
            state.anchors,
            *found_by,
            represents,
            self._shares_rare(shared),
        )

    def _is_telling(self, shared: Shared, anchors: int) -> bool:
        """Return whether two documents share rare keys, or `PRESUMED_PERCENT` of the anchors of one of them.

        `anchors` is the number of anchors of that one.
        """
        return self._shares_rare(shared) or 100 * shared.anchors >= PRESUMED_PERCENT * anchors

    def _shares_rare(self, shared: Shared) -> bool:
        least = max(RARE_KEYS, (shared.bands + shared.anchors) / RARE_PART)
        return shared.rare >= least or not self._limits.events_per_family
