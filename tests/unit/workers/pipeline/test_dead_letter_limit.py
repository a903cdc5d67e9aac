"""The share of refused records distinguishes a wrong deployment from bad input."""

import pytest

from nearstream.schemas.documents.record import ConsumerRecord, ProducerRecord
from nearstream.schemas.topics.dead_letter import DeadLetter, Payload, Reason, Stage, outgoing
from nearstream.workers.pipeline.dead_letters import (
    MIN_WINDOW_RECORDS,
    WINDOW_RECORDS,
    DeadLetterLimit,
    DeadLetterWindow,
)


def _batch(refused: list[bool], start: int = 0) -> tuple[list[ConsumerRecord], list[ProducerRecord]]:
    """Return records with their results, which are dead letters for the refused ones."""
    records = [ConsumerRecord("in", 0, start + number, 0, None, b"", []) for number in range(len(refused))]
    sent = [
        outgoing(DeadLetter(record, Stage.DECODE, Reason.NOT_JSON, ""), "dead", "w", Payload.FULL, 10_000)
        if dead
        else ProducerRecord("out", None, b"", [])
        for record, dead in zip(records, refused, strict=True)
    ]
    return records, sent


def test_so_many_in_a_row_are_one_too_many() -> None:
    refusals = DeadLetterWindow(DeadLetterLimit(5, 0.0))
    assert not refusals.exceeded_limit(*_batch([True] * 4))
    assert "5 dead letters in a row (limit 5); this batch: 1 not_json" in refusals.exceeded_limit(*_batch([True], 4))


def test_one_good_record_ends_a_row() -> None:
    refusals = DeadLetterWindow(DeadLetterLimit(5, 0.0))
    for start in range(0, 100, 10):
        assert not refusals.exceeded_limit(*_batch([True, True, True, True, False] * 2, start))


def test_a_row_inside_a_batch_counts() -> None:
    assert DeadLetterWindow(DeadLetterLimit(3, 0.0)).exceeded_limit(*_batch([False, True, True, True, False]))


def test_the_share_is_judged_when_enough_was_seen() -> None:
    refusals = DeadLetterWindow(DeadLetterLimit(0, 0.2))
    early = [True, False] * (MIN_WINDOW_RECORDS // 2)
    assert not refusals.exceeded_limit(*_batch(early[:-1]))
    assert "50.0% of the last 200 records" in refusals.exceeded_limit(*_batch(early[-1:], 199))


def test_old_records_leave_the_share() -> None:
    refusals = DeadLetterWindow(DeadLetterLimit(0, 0.2))
    assert not refusals.exceeded_limit(*_batch([True] * 20 + [False] * WINDOW_RECORDS))
    assert not refusals.exceeded_limit(*_batch([True] * 200, WINDOW_RECORDS + 20))
    assert refusals.exceeded_limit(*_batch([True], WINDOW_RECORDS + 220))


@pytest.mark.parametrize("limits", [DeadLetterLimit(0, 0.0), DeadLetterLimit(10_000, 1.0)])
def test_a_limit_of_zero_is_none(limits: DeadLetterLimit) -> None:
    assert not DeadLetterWindow(limits).exceeded_limit(*_batch([True] * 2000))


def test_letters_about_other_records_do_not_count() -> None:
    records, _ = _batch([False] * 3)
    _, letters = _batch([True] * 3, 50)
    assert not DeadLetterWindow(DeadLetterLimit(1, 0.0)).exceeded_limit(records, letters)
