"""A broker that answers with chosen errors.

It is the mock cluster inside librdkafka, which is part of the confluent-kafka wheel. It only serves to test error
codes: clients cannot create or describe topics, and its latency is not that of a real broker.
"""

import ctypes
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path
from typing import Any

import pytest

_PRODUCER = 0
_ERROR_BYTES = 256


class Request(IntEnum):
    """Requests of Kafka's protocol that can be answered with errors."""

    PRODUCE = 0
    OFFSET_COMMIT = 8


@dataclass(frozen=True)
class MockBroker:
    """A mock broker."""

    address: str  # `host:port`
    _library: Any
    _cluster: int

    def create(self, topic: str, partitions: int) -> None:
        """Create a topic.

        This blocks for a second if the broker's thread misses the call. It empties its wake-up pipe after it has looked
        for calls, so a call that comes in between waits until the thread looks again.
        """
        failed = self._library.rd_kafka_mock_topic_create(self._cluster, topic.encode(), partitions, 1)
        assert failed == 0, failed

    def refuse(self, topic: str, error: int) -> None:
        """Answer every request about this topic with this error code.

        The code 0 ends this. It can block for a second, as `create` can.
        """
        self._library.rd_kafka_mock_topic_set_error(self._cluster, topic.encode(), error)

    def answer(self, request: Request, errors: Sequence[int]) -> None:
        """Answer the next requests of this kind with these error codes, one each.

        The code 0 is a normal answer.
        """
        codes = (ctypes.c_int * len(errors))(*errors)
        self._library.rd_kafka_mock_push_request_errors_array(self._cluster, request, len(errors), codes)

    def answer_well(self, request: Request) -> None:
        """Discard the errors that are still to come."""
        self._library.rd_kafka_mock_clear_request_errors(self._cluster, request)


@contextmanager
def mock_broker() -> Iterator[MockBroker]:
    """Run a mock cluster of one broker, which is ready at once."""
    library = _library()
    text = ctypes.create_string_buffer(_ERROR_BYTES)
    client = library.rd_kafka_new(_PRODUCER, None, text, _ERROR_BYTES)
    assert client, text.value
    cluster = library.rd_kafka_mock_cluster_new(client, 1)
    try:
        yield MockBroker(library.rd_kafka_mock_cluster_bootstraps(cluster).decode(), library, cluster)
    finally:
        library.rd_kafka_mock_cluster_destroy(cluster)
        library.rd_kafka_destroy(client)


def _library() -> Any:  # noqa: ANN401 - ctypes has no types for it
    """Return the library that the wheel's module has loaded."""
    wheel = pytest.importorskip("confluent_kafka", reason="the mock cluster comes with the confluent-kafka wheel")
    folder = Path(wheel.__file__).parents[1] / "confluent_kafka.libs"
    library = ctypes.CDLL(str(next(folder.glob("librdkafka*"))))
    pointer, text, number, short = ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int, ctypes.c_int16
    functions: dict[str, tuple[Any, list[Any]]] = {
        "new": (pointer, [number, pointer, text, ctypes.c_size_t]),
        "destroy": (None, [pointer]),
        "mock_cluster_new": (pointer, [pointer, number]),
        "mock_cluster_destroy": (None, [pointer]),
        "mock_cluster_bootstraps": (text, [pointer]),
        "mock_topic_create": (number, [pointer, text, number, number]),
        "mock_topic_set_error": (None, [pointer, text, number]),
        "mock_push_request_errors_array": (None, [pointer, short, ctypes.c_size_t, ctypes.POINTER(number)]),
        "mock_clear_request_errors": (None, [pointer, short]),
    }
    for name, (result, arguments) in functions.items():
        function = getattr(library, f"rd_kafka_{name}")
        function.restype, function.argtypes = result, arguments
    return library
