"""Reading a dead letter back, and the record that a replay sends."""

from hashlib import sha256

import pytest

from nearstream.schemas.documents.record import ConsumerRecord, Headers, ProducerRecord, header
from nearstream.schemas.topics.dead_letter import (
    REPLAYS_HEADER,
    DeadLetter,
    Reason,
    StoredDeadLetter,
    dead_id,
    outgoing,
    read_dead_letter,
    sent_again,
)

FOREIGN: Headers = [("x", b"1"), ("x", None), ("__connect.errors.topic", b"of another pipeline"), ("", b"\xff")]
ORIGINAL = ConsumerRecord("nearstream.documents.v1", 3, 8812, 1_772_439_301_000, b"k", b"{broken", FOREIGN)


def _letter(about: ConsumerRecord = ORIGINAL, payload: str = "full", max_bytes: int = 1 << 20) -> ConsumerRecord:
    fault = DeadLetter(about, "decode", Reason.NOT_JSON, "JSON expected")
    return _kept(outgoing(fault, "nearstream.dead-letters.v1", "nearstream/0.3.0 sign", payload, max_bytes))


def _kept(sent: ProducerRecord) -> ConsumerRecord:
    return ConsumerRecord(sent.topic, 0, 17, 1_772_439_302_000, sent.key, sent.value, sent.headers)


def _read(letter: ConsumerRecord) -> StoredDeadLetter:
    kept = read_dead_letter(letter)
    assert kept is not None
    return kept


def test_a_letter_gives_back_the_record_that_was_refused() -> None:
    kept = _read(_letter())
    assert kept.original == ORIGINAL
    assert kept.dead_id == dead_id("nearstream.documents.v1", 3, 8812)
    assert (kept.reason, kept.stage, kept.detail, kept.worker) == (
        "not_json",
        "decode",
        "JSON expected",
        "nearstream/0.3.0 sign",
    )
    assert (kept.replays, kept.size, kept.sha256) == (0, 7, sha256(b"{broken").hexdigest())
    assert kept.is_whole


@pytest.mark.parametrize(
    "letter",
    [_letter(payload="head"), _letter(payload="hash"), _letter(ORIGINAL._replace(value=None))],
)
def test_a_letter_without_all_bytes_is_not_whole(letter: ConsumerRecord) -> None:
    assert not _read(letter).is_whole


def test_what_is_sent_again_is_the_original_but_for_the_count_which_goes_from_letter_to_letter() -> None:
    about = ORIGINAL
    for count in range(1, 5):
        kept = _read(_letter(about))
        sent = sent_again(kept, kept.original)
        assert [pair for pair in sent.headers if pair[0] == REPLAYS_HEADER] == [(REPLAYS_HEADER, b"%d" % count)]
        assert sent == ProducerRecord(ORIGINAL.topic, b"k", b"{broken", sent.headers, ORIGINAL.timestamp_ms)
        assert sent.headers[:-1] == FOREIGN
        about = ORIGINAL._replace(headers=sent.headers, offset=ORIGINAL.offset + count)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("nearstream-dead-id", b"0" * 32),
        ("nearstream-dead-topic", b"another"),
        ("nearstream-dead-partition", b"-1"),
        ("nearstream-dead-offset", b"8813"),
        ("nearstream-dead-offset", "٣".encode()),
        ("nearstream-dead-offset", None),
        ("nearstream-dead-bytes", b"many"),
        ("nearstream-dead-timestamp", b"9" * 20),
    ],
)
def test_what_contradicts_itself_is_no_letter(name: str, value: bytes | None) -> None:
    letter = _letter()
    headers = [(each, value if each == name else told) for each, told in letter.headers]
    assert read_dead_letter(letter._replace(headers=headers)) is None


def test_a_record_without_our_headers_is_no_letter() -> None:
    assert read_dead_letter(ORIGINAL) is None
    assert read_dead_letter(_letter(ORIGINAL._replace(partition=-1))) is None


def test_a_letter_of_a_later_release_is_read() -> None:
    letter = _letter()
    headers = [(name, b"new_reason" if name == "nearstream-dead-reason" else value) for name, value in letter.headers]
    headers.append(("nearstream-dead-news", b"1"))
    assert _read(letter._replace(headers=headers)).reason == "new_reason"
    assert header(headers, "nearstream-dead-id") is not None
