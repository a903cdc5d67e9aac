"""The parts of an unreadable record that its dead letter keeps."""

from hashlib import blake2b, sha256

import pytest
from aiokafka.record.default_records import DefaultRecordBatchBuilder

from nearstream.schemas.documents.record import ConsumerRecord, Headers, ProducerRecord, header
from nearstream.schemas.topics.dead_letter import HEAD_BYTES, DeadLetter, Reason, dead_id, outgoing
from nearstream.schemas.topics.table import DEAD_LETTERS, DOCUMENTS

MAX = DEAD_LETTERS.max_message_bytes
FOREIGN: Headers = [("x-b", b"2"), ("x-a", b"\xff"), ("x-b", None), ("x-b", b"1"), ("", b"")]
PLANTED = b"planted"
PAYLOADS = ("full", "head", "hash")


def record(
    value: bytes | None = b"{broken", key: bytes | None = b"k", headers: Headers | None = None
) -> ConsumerRecord:
    return ConsumerRecord("nearstream.documents.v1", 3, 8812, 1_772_439_301_000, key, value, headers or [])


def letter(about: ConsumerRecord, payload: str = "full", max_bytes: int = MAX) -> ProducerRecord:
    fault = DeadLetter(
        about, "decode", Reason.INVALID_TIME, "$.observed_at: expected a time with zone", "site a.example"
    )
    return outgoing(fault, "nearstream.dead-letters.v1", "nearstream/0.3.0 sign", payload, max_bytes)


def ours(sent: ProducerRecord) -> dict[str, bytes | None]:
    return {name: value for name, value in sent.headers if name.startswith("nearstream-dead-")}


def batch_bytes(sent: ProducerRecord) -> int:
    """Return the size that the broker counts for a batch of this record alone."""
    builder = DefaultRecordBatchBuilder(
        magic=2,
        compression_type=0,
        is_transactional=0,
        producer_id=-1,
        producer_epoch=-1,
        base_sequence=-1,
        batch_size=1 << 30,
    )
    assert builder.append(0, timestamp=1_772_439_301_000, key=sent.key, value=sent.value, headers=sent.headers)
    return len(builder.build())


def test_a_dead_letter_keeps_key_headers_and_bytes_but_of_a_private_record() -> None:
    sent = letter(record(b"{broken", b"k", FOREIGN))
    assert (sent.topic, sent.key, sent.value) == ("nearstream.dead-letters.v1", b"k", b"{broken")
    assert sent.headers[: len(FOREIGN)] == FOREIGN
    assert sent.timestamp_ms is None
    assert letter(record(key=None)).key is letter(record(key=None), "hash").key is None
    for said in (b"0", None):
        assert letter(record(headers=[("nearstream-private", said)])).value == b"{broken"


def test_a_dead_letter_says_why_where_and_how_much() -> None:
    assert ours(letter(record())) == {
        "nearstream-dead-id": dead_id("nearstream.documents.v1", 3, 8812).encode(),
        "nearstream-dead-reason": b"invalid_time",
        "nearstream-dead-detail": b"$.observed_at: expected a time with zone",
        "nearstream-dead-stage": b"decode",
        "nearstream-dead-worker": b"nearstream/0.3.0 sign",
        "nearstream-dead-topic": b"nearstream.documents.v1",
        "nearstream-dead-partition": b"3",
        "nearstream-dead-offset": b"8812",
        "nearstream-dead-timestamp": b"1772439301000",
        "nearstream-dead-replays": b"0",
        "nearstream-dead-bytes": b"7",
        "nearstream-dead-sha256": sha256(b"{broken").hexdigest().encode(),
        "nearstream-dead-payload": b"full",
        "nearstream-dead-from": b"site a.example",
    }


def test_the_id_names_the_place_alone() -> None:
    place = ("nearstream.documents.v1", 3, 8812)
    assert dead_id(*place) == blake2b(b"nearstream.documents.v1/3/8812", digest_size=16).hexdigest()
    others = {dead_id("t", 1, 23), dead_id("t", 12, 3), dead_id("t2", 1, 23), dead_id(*place)}
    assert len(others) == 4
    again = record(b"other bytes", b"other", FOREIGN)._replace(timestamp_ms=5)
    assert header(letter(again).headers, "nearstream-dead-id") == dead_id(*place).encode()


@pytest.mark.parametrize("payload", PAYLOADS)
def test_a_null_value_never_becomes_a_removal_of_the_letter(payload: str) -> None:
    sent = letter(record(None, b"\xff"), payload)
    assert sent.value == b""
    assert header(sent.headers, "nearstream-dead-bytes") == b"0"


@pytest.mark.parametrize(("value", "payload"), [(bytes(range(256)) * 1024, "head"), (b"z" * (MAX + 1), "full")])
def test_a_head_letter_and_one_of_an_oversized_record_keep_64_kib(value: bytes, payload: str) -> None:
    sent = letter(record(value, headers=FOREIGN), payload)
    assert (sent.key, sent.value, sent.headers[: len(FOREIGN)]) == (b"k", value[:HEAD_BYTES], FOREIGN)
    assert ours(sent)["nearstream-dead-payload"] == b"head"
    assert ours(sent)["nearstream-dead-bytes"] == str(len(value)).encode()
    assert ours(sent)["nearstream-dead-sha256"] == sha256(value).hexdigest().encode()


@pytest.mark.parametrize("value", [b"short", b"z" * MAX, None])
@pytest.mark.parametrize(
    ("key", "headers"),
    [
        (b"k", [("x", b"y" * MAX)]),
        (b"k", [("x" * 100, None)] * 60_000),
        (b"k" * MAX, FOREIGN),
        (b"k" * MAX, [("x", b"y" * MAX)]),
    ],
    ids=["one large header", "many headers", "large key", "both"],
)
def test_a_record_whose_key_or_headers_alone_are_too_large_still_makes_a_letter(
    key: bytes, headers: Headers, value: bytes | None
) -> None:
    sent = letter(record(value, key, headers))
    assert batch_bytes(sent) <= MAX
    assert sent.value == (value or b"")[:HEAD_BYTES]
    assert sent.key == key[:HEAD_BYTES]
    assert ours(sent)["nearstream-dead-payload"] == b"head"


@pytest.mark.parametrize("headers", [[], [("x" * 40, b"y")] * 500, [("é" * 200, b"y" * 2000)] * 20])
def test_no_letter_exceeds_its_topic_whatever_the_size_of_the_record(headers: Headers) -> None:
    around = range(MAX - 64 * 1024, MAX + 1024, 1021)
    sizes = {batch_bytes(letter(record(b"z" * size, headers=headers))) for size in around}
    assert max(sizes) <= MAX
    whole = letter(record(b"z" * DOCUMENTS.max_message_bytes))
    assert ours(whole)["nearstream-dead-payload"] == b"full"


def test_a_hash_letter_keeps_length_and_digest_alone() -> None:
    sent = letter(record(b"secret", b"mail@a.example", FOREIGN), "hash")
    assert sent.value == b""
    assert sent.key == blake2b(b"mail@a.example", digest_size=16).digest()
    assert ours(sent) == dict(sent.headers)
    assert ours(sent)["nearstream-dead-bytes"] == b"6"
    assert ours(sent)["nearstream-dead-sha256"] == sha256(b"secret").hexdigest().encode()
    assert ours(sent)["nearstream-dead-payload"] == b"hash"


@pytest.mark.parametrize("payload", PAYLOADS)
@pytest.mark.parametrize("value", [PLANTED, PLANTED * MAX, None])
def test_a_private_record_leaves_no_bytes(payload: str, value: bytes | None) -> None:
    headers: Headers = [("x", PLANTED), ("nearstream-private", b"1"), ("planted", b"x")]
    sent = letter(record(value, PLANTED, headers), payload)
    assert ours(sent)["nearstream-dead-payload"] == b"hash"
    assert PLANTED not in repr(sent).encode()


@pytest.mark.parametrize(
    ("said", "counted"), [(b"2", b"2"), (b"x", b"0"), (b"-1", b"0"), (b"9" * 40, b"0"), (None, b"0"), (b"\xff", b"0")]
)
def test_the_count_of_replays_is_read_from_the_record(said: bytes | None, counted: bytes) -> None:
    sent = letter(record(headers=[("nearstream-dead-replays", said)]))
    assert header(sent.headers, "nearstream-dead-replays") == counted
