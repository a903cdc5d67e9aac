"""Where the anchors of documents led lately."""

from nearstream.streams.matching.judge import Hints


def anchors(*numbers: int) -> list[bytes]:
    return [b"%d" % number for number in numbers]


def test_anchors_lead_to_the_document_that_was_learned_last() -> None:
    hints = Hints(100)
    hints.learn(anchors(1, 2, 3), 7)
    hints.learn(anchors(3), 8)
    assert hints.numbers(anchors(1, 2, 3, 4)) == [7, 7, 8]
    assert hints.numbers(anchors(4, 5)) == []


def test_the_oldest_anchors_are_forgotten_and_half_of_the_cap_is_kept() -> None:
    hints = Hints(100)
    for number in range(1, 201):
        hints.learn(anchors(number), number)
    known = hints.numbers(anchors(*range(1, 201)))
    assert 50 <= len(known) <= 100
    assert known == list(range(201 - len(known), 201))


def test_a_document_with_more_anchors_than_are_remembered_has_its_last_ones() -> None:
    hints = Hints(10)
    hints.learn(anchors(*range(1, 21)), 3)
    assert hints.numbers(anchors(*range(1, 21))) == [3] * 5


def test_what_was_learned_again_counts_also_when_the_former_is_remembered_still() -> None:
    hints = Hints(4)
    hints.learn(anchors(1, 2, 3), 1)
    hints.learn(anchors(3), 2)
    assert hints.numbers(anchors(3)) == [2]
