"""Dead letters: their log lines, records that a step cannot take, and the limit beyond which a worker halts."""

from dataclasses import replace

import pytest

from nearstream.schemas.documents.record import ConsumerRecord, ProducerRecord
from nearstream.schemas.topics.dead_letter import (
    DeadLetter,
    Reason,
    outgoing,
)
from nearstream.workers.pipeline import dead_letters
from nearstream.workers.pipeline.dead_letters import (
    MAX_CONSECUTIVE,
    MIN_WINDOW_RECORDS,
    WHOEVER,
    WINDOW_RECORDS,
    DeadLetterLimit,
    DeadLetterLog,
    DeadLetterWindow,
    DeadLetterWriter,
    dead_letter_limit,
)
from tests.support.turns import until


def about(offset: int, reason: Reason = Reason.NOT_JSON) -> DeadLetter:
    headers = [("planted", b"planted")]
    record = ConsumerRecord("nearstream.documents.v1", 3, offset, 0, b"planted", b'{"text":"planted"', headers)
    return DeadLetter(record, "decode", reason, "Input data was truncated")


async def test_the_log_tells_the_first_letter_of_a_reason_without_its_value_and_counts_the_others(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dead_letters, "LOG_INTERVAL_SECONDS", 0.1)
    told = DeadLetterLog()
    for offset in range(40):
        told.add(about(offset))
    told.add(about(40, Reason.INVALID_ID))
    place = "nearstream.documents.v1 3 offset"
    assert caplog.messages == [
        f"dead letter: not_json at {place} 0: Input data was truncated",
        f"dead letter: invalid_id at {place} 40: Input data was truncated",
    ]
    await until(lambda: len(caplog.messages) >= 3)
    assert caplog.messages[2:] == ["dead letters: 39 more not_json within 0.1 s"]


def test_a_worker_halts_after_a_hundred_letters_in_a_row_unless_no_ratio_is_set() -> None:
    assert dead_letter_limit(0.2) == DeadLetterLimit(100, 0.2)
    assert dead_letter_limit(0.0) == DeadLetterLimit(0, 0.0)


# Whether dead letters of a reason say that the deployment is at fault. Skipping is done by hand, without a worker.
COUNTS = {
    **dict.fromkeys(("empty_value", "too_large", "decompression_limit", "extraction_failed"), False),
    **dict.fromkeys(
        ("unsupported_content_type", "not_json", "invalid_message", "no_content", "several_contents"), True
    ),
    **dict.fromkeys(("invalid_id", "invalid_time", "invalid_signature", "other_scheme", "unprocessable"), True),
    "skipped_by_operator": True,
}
USUAL = dead_letter_limit(0.2)
SITES = [f"https://{number}.x{number}.example/" for number in range(5)]


@pytest.mark.parametrize(("reason", "counts"), COUNTS.items())
async def test_only_refusals_for_which_the_deployment_may_be_at_fault_halt_it(reason: str, counts: bool) -> None:
    assert COUNTS.keys() == set(Reason)
    assert bool(_judged(MAX_CONSECUTIVE, [""], Reason(reason))) is counts
    assert not _judged(MAX_CONSECUTIVE, [""], Reason(reason), DeadLetterLimit(100, 0.2, drained_ms=1))


@pytest.mark.parametrize(
    ("count", "urls", "halts"),
    [
        (MAX_CONSECUTIVE - 1, [""], False),
        (MAX_CONSECUTIVE, [""], True),
        (WHOEVER * MAX_CONSECUTIVE - 1, SITES[:1], False),
        (WHOEVER * MAX_CONSECUTIVE - 1, ["https://a.evil.example/", "https://b.evil.example/"], False),
        (WHOEVER * MAX_CONSECUTIVE, SITES[:1], True),
        (MAX_CONSECUTIVE, SITES[:4], False),
        (MAX_CONSECUTIVE, SITES, True),
    ],
)
async def test_one_site_alone_does_not_halt_a_worker_and_all_records_do(
    count: int, urls: list[str], halts: bool
) -> None:
    assert bool(_judged(count, urls, limit=DeadLetterLimit(MAX_CONSECUTIVE, 1.0))) is halts


async def test_of_the_share_of_dead_letters_one_site_reaches_a_fifth_of_the_limit() -> None:
    window = DeadLetterWindow(DeadLetterLimit(0, 0.2))
    writer = DeadLetterWriter("dead", "w", "full")
    for number in range(WINDOW_RECORDS):
        record = about(number).record._replace(value=b'{"url": "https://evil.example/"}')
        letters = [writer.write(DeadLetter(record, "decode", Reason.NO_CONTENT, ""))] if number % 2 else []
        assert not window.exceeded_limit([record], letters)


def _judged(count: int, urls: list[str], reason: Reason = Reason.NOT_JSON, limit: DeadLetterLimit = USUAL) -> str:
    """Return the limit that so many refused records in a row exceed, which came from these URLs in turn."""
    writer = DeadLetterWriter("dead", "w", "full")
    headers = [[("nearstream-url", urls[number % len(urls)].encode())] for number in range(count)]
    letters = [
        replace(about(number, reason), record=about(number).record._replace(headers=each))
        for number, each in enumerate(headers)
    ]
    return DeadLetterWindow(limit).exceeded_limit([each.record for each in letters], list(map(writer.write, letters)))


def _batch(refused: list[bool], start: int = 0) -> tuple[list[ConsumerRecord], list[ProducerRecord]]:
    """Return records with their results, which are dead letters for the refused ones."""
    records = [ConsumerRecord("in", 0, start + number, 0, None, b"", []) for number in range(len(refused))]
    sent = [
        outgoing(DeadLetter(record, "decode", Reason.NOT_JSON, ""), "dead", "w", "full", 10_000)
        if dead
        else ProducerRecord("out", None, b"", [])
        for record, dead in zip(records, refused, strict=True)
    ]
    return records, sent


HALF = [True, False] * (MIN_WINDOW_RECORDS // 2)


@pytest.mark.parametrize(
    ("limit", "batches", "told"),
    [
        (DeadLetterLimit(5, 0.0), [[True] * 4, [True]], "5 dead letters in a row (limit 5); this batch: 1 not_json"),
        (DeadLetterLimit(5, 0.0), [[True, True, True, True, False] * 20], ""),
        (DeadLetterLimit(3, 0.0), [[False], [False, True, True, True, False]], "3 dead letters in a row"),
        (DeadLetterLimit(0, 0.2), [HALF[:-1], HALF[-1:]], "50.0% of the last 200 records"),
        (DeadLetterLimit(0, 0.2), [[True] * 20 + [False] * WINDOW_RECORDS, [True] * 200], ""),
        (DeadLetterLimit(0, 0.2), [[True] * 20 + [False] * WINDOW_RECORDS + [True] * 200, [True]], "20.1% of the last"),
        (DeadLetterLimit(0, 0.0), [[True] * 2000], ""),
        (DeadLetterLimit(10_000, 1.0), [[True] * 2000], ""),
    ],
    ids=["in a row", "a good one", "inside a batch", "enough seen", "old ones", "newest ones", "no limit", "never"],
)
def test_dead_letters_are_judged_in_a_row_and_by_their_share(
    limit: DeadLetterLimit, batches: list[list[bool]], told: str
) -> None:
    window, start = DeadLetterWindow(limit), 0
    for batch in batches:
        exceeded = window.exceeded_limit(*_batch(batch, start))
        assert not exceeded or batch is batches[-1]
        start += len(batch)
    assert exceeded.startswith(told)
    assert bool(exceeded) is bool(told)
