"""Which of those that share keys with a document are worth a look, and which of these a comparison."""

from collections.abc import Container, Mapping

from nearstream.streams.matching.decision import founder_of
from nearstream.streams.matching.tally import Shared, Tally
from nearstream.streams.store.limits import IndexLimits
from nearstream.streams.store.messages import FamilyView, View

ENOUGH = 2  # least weight for each anchor of the document with fewer of them, such as one rare anchor in 50
BEST = 5  # candidates that are compared even if they share less than that
COMMON_READS = 8  # states that are looked at though they share only what many documents have
LOOKS = 128  # states that are looked at for one document, digest and lineage matches apart
FAMILY_CANDIDATES = 2  # candidates of one family, the representative among them
COPY_PERCENT = 70  # a document that shares this many of the anchors with another may be its copy


def shortlist(counted: Tally, anchors: int, limits: IndexLimits) -> tuple[list[int], bool]:
    """Return the states to look at, the best first, and whether there are more.

    These are all digest and lineage matches, and up to `LOOKS` others by the weight of the shared keys. Of those that
    share only what many documents have, these are the first `COMMON_READS`.

    Args:
        counted: Who shares how many keys with the document.
        anchors: Number of anchor keys of the document.
        limits: Bounds of the index.
    """
    chosen: list[int] = []
    others = common = 0
    for number in counted.ranked():
        shared = counted.shared[number]
        if not shared.is_direct:
            is_common = not is_telling(shared, anchors, limits)
            if is_common and common == COMMON_READS:
                continue
            if others == LOOKS:
                return chosen, True
            common += is_common
            others += 1
        chosen.append(number)
    return chosen, False


def is_telling(shared: Shared, anchors: int, limits: IndexLimits) -> bool:
    """Return whether two documents share rare keys, or `COPY_PERCENT` of the anchors of one of them.

    `anchors` is the number of anchors of that one.
    """
    return not limits.events_per_family or shared.shares_rare or 100 * shared.anchors >= COPY_PERCENT * anchors


def pick(
    shared: Mapping[int, Shared],
    views: Mapping[int, View],
    families: Mapping[int, FamilyView],
    anchors: int,
    limits: IndexLimits,
) -> tuple[list[int], bool]:
    """Return the states to compare with, the best first, and whether the limit left some out.

    They are ranked by their share: the weight divided by the number of anchors of the document with fewer of them.
    Behind the first `BEST`, the share has to be `ENOUGH`, and the shared keys have to be telling.

    Args:
        shared: The keys that each living state shares with the document.
        views: What is known about these states.
        families: What is known about their families.
        anchors: Number of anchor keys of the document.
        limits: Bounds of the index.
    """
    fewer = {number: min(anchors, views[number].anchors) for number in shared}
    shares = {number: shared[number].weight / max(fewer[number], 1) for number in shared}
    ranked = sorted(shared, key=lambda number: (not shared[number].is_direct, -shares[number], number))
    chosen: list[int] = []
    others, room = 0, dict[int, int]()
    for number in ranked:
        one = shared[number]
        may_be_named = (
            one.is_direct or others < BEST or (shares[number] >= ENOUGH and is_telling(one, fewer[number], limits))
        )
        if may_be_named and _is_of_the_few(number, one, views, families, room, shared, limits):
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
    limits: IndexLimits,
) -> bool:
    """Return whether a state represents its family, or is one of the best of the others.

    States of one lineage are not limited, nor are undecided ones. `room` counts by family how many may follow.
    """
    decision = views[number].decision
    if not limits.events_per_family or one.by_lineage or decision is None:
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
    """Return who represents a family: the founder, as long as nobody has joined it."""
    family = families.get(founder)
    return founder if family is None else family.representative
