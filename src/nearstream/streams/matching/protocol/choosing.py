"""Choose the states to compare a document with, and the family that it joins."""

from collections.abc import Container, Iterable, Mapping

from nearstream.streams.matching.protocol.case import Case, Compared
from nearstream.streams.matching.protocol.decision import founder_of, is_kept
from nearstream.streams.matching.protocol.tally import Shared, is_telling
from nearstream.streams.store.limits import IndexLimits
from nearstream.streams.store.messages import FamilyView, View

Choice = tuple[int, tuple[int, ...]]
"""The founder of the family to join, 0 if the document founds one. Then undecided copies that have to know of the
document, or be decided, before the document goes on."""


def choose(case: Case, views: Mapping[int, View], families: Mapping[int, FamilyView]) -> Choice:
    """Choose the family of a document, which was compared with all that it met.

    The first family that fits is chosen: its own if others have followed the document, one that counts the document
    already, the family of a decided equal text, that of the former state if the document is a copy of this, and that of
    the representative with the best rank. An undecided equal text goes before other copies, or else equal texts that
    are copies of two families would end in both.
    """
    followers = any(_founder(each.number, views) == case.number for each in case.copies)
    if case.registered.is_founder or followers:
        return case.number, ()
    if case.counted_in:
        return min(case.counted_in), ()
    eligible = [each for each in case.copies if _is_eligible(case, each, views, families)]
    undecided = [each for each in case.copies if is_undecided(each.number, views)]
    best = min(eligible, key=lambda each: _preference(case, each, views, families), default=None)
    if best is None:
        return 0, tuple(each.number for each in undecided)
    twins = () if best.is_exact else tuple(each.number for each in undecided if each.is_exact)
    return _founder(best.number, views), twins


def _preference(
    case: Case, each: Compared, views: Mapping[int, View], families: Mapping[int, FamilyView]
) -> tuple[bool, bool, bool, int, object]:
    founder = _founder(each.number, views)
    is_former = each.number == case.registered.former
    if each.is_exact:  # equal texts have to agree on one family
        return False, False, not _representative(founder, views, families), founder, each.number
    return True, not is_former, each.number != _representative(founder, views, families), 0, each.rank


def _is_eligible(case: Case, each: Compared, views: Mapping[int, View], families: Mapping[int, FamilyView]) -> bool:
    """Return whether the family of a copy can be joined through it.

    A family is joined through its representative, so that it does not drift from copy to copy, or through an equal
    text, or the former state. If nobody represents it, every copy does that was alive when it was met.
    """
    view = views.get(each.number)
    if view is None or view.decision is None or view.is_late:
        return False
    representative = _representative(founder_of(view.decision), views, families)
    is_former = each.number == case.registered.former
    was_alive = each.number in case.undecided or each.number in case.superseded
    is_alive = not view.is_dead or representative > 0 or was_alive
    return (is_alive or is_former) and (each.is_exact or is_former or representative in (0, each.number))


def covering(related: Iterable[Compared], views: Mapping[int, View]) -> Compared | None:
    """Return the first related document that makes another one redundant, or None.

    The related document is alive, has the whole text and is not redundant. Because it was sent first, the first
    document of a text is never redundant, also if decisions are lost and taken again.
    """
    kept = (each for each in related if is_kept(views[each.number].decision) and not views[each.number].is_dead)
    return next((each for each in kept if each.comes_before and each.has_all), None)


def is_undecided(number: int, views: Mapping[int, View]) -> bool:
    """Return whether a state is still to be decided."""
    view = views.get(number)
    return view is not None and view.decision is None and not view.is_gone and not view.is_late


def _founder(number: int, views: Mapping[int, View]) -> int:
    view = views.get(number)
    return founder_of(view.decision) if view is not None and view.decision is not None else 0


def _representative(founder: int, views: Mapping[int, View], families: Mapping[int, FamilyView]) -> int:
    """Return the living representative of a family, or 0. One that its slot has lost represents nobody."""
    family = families.get(founder)
    representative = founder if family is None else family.representative
    view = views.get(representative)
    return 0 if view is None or view.is_dead else representative


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
