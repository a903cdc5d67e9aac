"""Where the anchors of documents led lately."""

from nearstream.streams.matching.judge import Hints


def anchors(*numbers: int) -> list[bytes]:
    return [b"%d" % number for number in numbers]


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
