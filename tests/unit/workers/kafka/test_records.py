"""Records as aiokafka returns them."""

from aiokafka import ConsumerRecord as FetchedRecord

from nearstream.schemas.record import ConsumerRecord
from nearstream.workers.kafka.records import as_record


def test_a_record_is_read_as_it_was_sent() -> None:
    headers = (("a", b"1"), ("b", None), ("a", b"\xff"))
    fetched = FetchedRecord("in", 1, 3, 1_772_439_300_001, 0, b"k", b"v", None, 1, 1, headers)
    assert as_record(fetched) == ConsumerRecord("in", 1, 3, 1_772_439_300_001, b"k", b"v", list(headers))
