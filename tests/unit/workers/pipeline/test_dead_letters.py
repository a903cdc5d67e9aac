"""Log lines about dead letters."""

import asyncio
import struct
from collections.abc import Sequence

import pytest

from nearstream.schemas.documents.record import ConsumerRecord, ProducerRecord
from nearstream.schemas.topics.dead_letter import DETAIL_HEADER, DeadLetter, Payload, Reason, Stage, header
from nearstream.workers.pipeline import dead_letters, match
from nearstream.workers.pipeline.dead_letters import DeadLetterLog, DeadLetterWriter, decide_apart
from tests.support.matching import Topic, matching, prose, record, signed


def about(offset: int, reason: Reason = Reason.NOT_JSON) -> DeadLetter:
    headers = [("planted", b"planted")]
    record = ConsumerRecord("nearstream.documents.v1", 3, offset, 0, b"planted", b'{"text":"planted"', headers)
    return DeadLetter(record, Stage.DECODE, reason, "Input data was truncated")


async def test_the_log_names_reason_and_place_but_no_value(caplog: pytest.LogCaptureFixture) -> None:
    sent = DeadLetterWriter("dead", "nearstream/0 sign", Payload.HEAD).write(about(8812))
    assert sent.topic == "dead"
    assert header(sent.headers, "nearstream-dead-payload") == b"head"
    assert caplog.messages == [
        "dead letter: not_json at nearstream.documents.v1 3 offset 8812: Input data was truncated"
    ]


async def test_the_log_tells_the_first_letter_of_a_reason_and_counts_the_others(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dead_letters, "LOG_INTERVAL_SECONDS", 0.1)
    told = DeadLetterLog()
    for offset in range(40):
        told.add(about(offset))
    told.add(about(40, Reason.INVALID_ID))
    assert [message.split()[2] for message in caplog.messages] == ["not_json", "invalid_id"]
    async with asyncio.timeout(60):
        while len(caplog.messages) < 3:
            await asyncio.sleep(0.01)
    assert caplog.messages[2:] == ["dead letters: 39 more not_json within 0.1 s"]


async def test_a_batch_that_is_tried_again_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    told = DeadLetterLog()
    for _ in range(3):
        for offset, reason in enumerate(Reason):
            told.add(about(offset, reason))
    assert len(caplog.messages) == len(Reason)


@pytest.mark.parametrize(
    "error",
    [ValueError("planted"), OverflowError(), KeyError("planted"), struct.error(), RecursionError(), UnicodeError()],
    ids=lambda error: type(error).__name__,
)
async def test_a_record_whose_data_a_step_cannot_take_gets_a_dead_letter(error: Exception) -> None:
    async def decide(records: Sequence[ConsumerRecord]) -> list[ProducerRecord]:
        if any(each.offset == 5 for each in records):
            raise error
        return [ProducerRecord("out", str(each.offset).encode(), b"", []) for each in records]

    async def refuse(refused: ConsumerRecord, failed: BaseException) -> ProducerRecord:
        return DeadLetterWriter("dead", "nearstream/0 sign", Payload.HASH).unprocessable(refused, Stage.SIGN, failed)

    sent = await decide_apart([about(offset).record for offset in range(8)], decide, refuse)
    assert [each.key for each in sent if each.topic == "out"] == [
        str(offset).encode() for offset in range(8) if offset != 5
    ]
    (letter,) = (each for each in sent if each.topic == "dead")
    assert ("nearstream-dead-offset", b"5") in letter.headers
    detail = header(letter.headers, DETAIL_HEADER) or b""
    assert type(error).__name__.encode() in detail
    assert b"planted" not in detail


async def test_an_error_that_is_none_of_data_is_raised() -> None:
    async def decide(_: Sequence[ConsumerRecord]) -> list[ProducerRecord]:
        raise RuntimeError("the bug")

    async def refuse(*_: object) -> ProducerRecord:
        raise AssertionError

    with pytest.raises(RuntimeError, match="the bug"):
        await decide_apart([about(1).record, about(2).record], decide, refuse)


async def test_the_step_that_matches_passes_over_a_record_on_which_it_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    read = match.arrival_of

    def failing(given: ConsumerRecord, *rest: object) -> object:
        if given.offset == 2:
            raise OverflowError
        return read(given, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(match, "arrival_of", failing)
    topic = Topic()
    records = [record(signed(f"d{offset}", prose(1)), offset) for offset in range(3)]
    sent = await matching(topic).decide(records)
    assert sorted(each.topic.split(".")[2] for each in sent) == ["dead-letters", "near-duplicates"]
    assert topic.covered[-1] == (0, 2)
