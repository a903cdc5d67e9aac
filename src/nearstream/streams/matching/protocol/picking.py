"""Which of those that share keys with a document are worth a comparison."""

from collections.abc import Container, Mapping

from nearstream.streams.matching.protocol.decision import founder_of, is_kept
from nearstream.streams.matching.protocol.tally import Shared, is_telling
from nearstream.streams.store.limits import IndexLimits
from nearstream.streams.store.messages import FamilyView, View

ENOUGH = 2  # least weight for each anchor of the document with fewer of them, such as one rare anchor in 50
BEST = 5  # candidates that are compared even if they share less than that
FAMILY_CANDIDATES = 2  # candidates of one family, the representative among them
_KEPT = 0  # the place in `room` of the state that is not redundant, because no family has this number


def pick(
    shared: Mapping[int, Shared],
    views: Mapping[int, View],
    families: Mapping[int, FamilyView],
    anchors: int,
    limits: IndexLimits,
) -> tuple[list[int], bool]:
    """Return the states to compare with, the best first, and whether the limit left some out.

    They are ranked by their share: the weight of the shared keys divided by the number of anchors of the document with
    fewer of them. Behind the first `BEST`, the share has to be `ENOUGH`, and the shared keys have to be telling.
    """
    fewer = {number: min(anchors, views[number].anchors) for number in shared}
    shares = {number: shared[number].weight / max(fewer[number], 1) for number in shared}
    ranked = sorted(shared, key=lambda number: (not shared[number].is_direct, -shares[number], number))
    chosen: list[int] = []
    others, room = 0, dict[int, int]()
    for number in ranked:
        one = shared[number]
        may_be_named = one.is_direct or others < BEST or (shares[number] >= ENOUGH and is_telling(one, fewer[number]))
        if may_be_named and _is_of_the_few(number, one, views, families, room, shared):
            others += not one.is_direct
            if others > limits.candidates:
                return chosen, True
            chosen.append(number)
    return chosen, False


def _is_of_the_few(
    number: int,
    one: Shared,
    views: Mapping[int, View],
    families: Mapping[int, FamilyView],
    room: dict[int, int],
    found: Container[int],
) -> bool:
    """Return whether a state represents its family, or is one of the best of the others.

    States of one lineage are not limited, nor are undecided ones. One state with an equal digest that is not redundant
    is added. `room` counts by family how many may follow.
    """
    decision = views[number].decision
    if one.by_lineage or decision is None:
        return True
    if one.by_digest and is_kept(decision) and room.setdefault(_KEPT, 1):
        room[_KEPT] = 0
        return True
    founder = founder_of(decision)
    representative = representative_of(founder, families)
    if number == representative or not representative:
        return True
    if founder not in room:
        room[founder] = FAMILY_CANDIDATES - (representative in found)
    room[founder] -= 1
    return room[founder] >= 0


def representative_of(founder: int, families: Mapping[int, FamilyView]) -> int:
    """Return the representative of a family. This is the founder until a second member joins."""
    family = families.get(founder)
    return founder if family is None else family.representative
