"""Log lines about dead letters."""

import asyncio

import pytest

from nearstream.schemas.dead_letter import DeadLetter, Payload, Reason, Stage, header
from nearstream.schemas.record import ConsumerRecord
from nearstream.workers.pipeline import dead_letters
from nearstream.workers.pipeline.dead_letters import DeadLetterLog, DeadLetterWriter


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
