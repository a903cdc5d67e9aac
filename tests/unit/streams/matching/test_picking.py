"""Which of those that share keys with a document are compared with it."""

from collections.abc import Sequence
from dataclasses import replace

from nearstream.streams.matching.protocol.choosing import BEST, pick
from nearstream.streams.matching.protocol.tally import COMMON_READS, RARE_BELOW, Shared, shortlist
from nearstream.streams.store.buckets import BUCKET
from nearstream.streams.store.history import NO_ORDER
from nearstream.streams.store.limits import IndexLimits
from nearstream.streams.store.messages import ANCHOR, FamilyView, View
from nearstream.streams.store.registration import NUMBER_BYTES
from tests.reference.tally import weight

LIMITS = IndexLimits()


def view(anchors: int, founder: int = 0) -> View:
    decision = founder.to_bytes(NUMBER_BYTES, "big") + b"\0" if founder else None
    return View(NO_ORDER, decision, anchors, False, False, False, None, None)


def of_anchors(counts: Sequence[int], others: int = 1) -> Shared:
    """Return what is shared where so many anchors are, each of which so many earlier documents have."""
    shared = sum(counts)
    return Shared(weight(others) * shared, shared, rare=shared if others < RARE_BELOW else 0)


def chosen(shared: dict[int, Shared], anchors: dict[int, int], own: int, limits: IndexLimits) -> tuple[list[int], bool]:
    return pick(shared, {number: view(count) for number, count in anchors.items()}, {}, own, limits)


def test_small_documents_rank_by_how_much_of_them_is_shared() -> None:
    shared = {1: of_anchors([5]), 2: of_anchors([5]), 3: of_anchors([5]), 4: of_anchors([1])}
    numbers, cut = chosen(shared, {1: 40, 2: 41, 3: 6, 4: 2}, 45, replace(LIMITS, candidates=2))
    assert (numbers, cut) == ([3, 4], True)


def test_rare_keys_count_more_than_many_common_ones() -> None:
    crowd = {number: of_anchors([4], others=20) for number in range(1, 21)}
    numbers, cut = chosen(
        {**crowd, 30: of_anchors([1])}, dict.fromkeys((*crowd, 30), 9), 45, replace(LIMITS, candidates=1)
    )
    assert (numbers, cut) == ([30], True)


def test_digest_and_lineage_matches_come_first_and_are_not_limited() -> None:
    direct = {number: Shared(by_digest=number % 2 == 0, by_lineage=number % 2 == 1) for number in range(1, 9)}
    near = {number: of_anchors([number]) for number in range(20, 24)}
    numbers, cut = chosen(direct | near, dict.fromkeys((*direct, *near), 40), 40, replace(LIMITS, candidates=2))
    assert (numbers, cut) == ([*range(1, 9), 23, 22], True)


def test_behind_the_best_those_that_share_little_are_left_out() -> None:
    shared = {number: of_anchors([1], others=20) for number in range(1, 30)}
    numbers, cut = chosen(shared, dict.fromkeys(shared, 60), 60, LIMITS)
    assert (numbers, cut) == ([*range(1, BEST + 1)], False)


def test_two_of_a_family_are_compared_and_its_representative_is_one() -> None:
    shared = {number: of_anchors([20 - number]) for number in range(1, 10)}
    views = {number: view(20, founder=2) for number in shared}
    families = {2: FamilyView(7, False, 0, bytes(16), 0)}
    assert pick(shared, views, families, 20, LIMITS) == ([1, 7], False)
    lineage = {number: replace(each, by_lineage=True) for number, each in shared.items()}
    assert len(pick(lineage, views, families, 20, LIMITS)[0]) == len(lineage)


def test_of_those_that_share_only_common_text_few_are_looked_at() -> None:
    numbers = [*range(1, 31)]
    packed = b"".join(number.to_bytes(NUMBER_BYTES, "big") for number in numbers)
    keys = b"".join(ANCHOR + bytes([key]) * 8 for key in range(9))
    found = [(keys, b"".join(BUCKET.pack(key, len(numbers)) + packed for key in range(9)))]
    assert [*shortlist(found, 99, 40, LIMITS).shared] == numbers[:COMMON_READS]
    assert [*shortlist(found, 99, 9, LIMITS).shared] == numbers  # they share all that this one has
