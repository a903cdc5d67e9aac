"""The replay log: which dead letters of a partition were already replayed.

The log is stored as the metadata of a committed offset, in a group of its own that never has members. A replay has to
remember what it sent, so that a second run does not send it again. Commit metadata needs no further topic, database or
permission beyond that group: Kafka stores it for each partition, replaces it atomically, and deletes it after the time
that we ask for, which is the retention of dead letters. It is small, 4096 bytes by default, so the log holds spans of
offsets instead of single offsets: a replay of all dead letters is one span.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import msgspec

Span = tuple[int, int]
ALL_REASONS = ""


class TooManySpansError(Exception):
    """The log has more spans than commit metadata can hold."""


@dataclass(frozen=True)
class Replayed:
    """Offsets of the dead letters that replays have decided.

    Attributes:
        spans: Spans of each reason that was asked for, or of `ALL_REASONS`, ordered and disjoint. A span is the first
            offset and the offset after the last.
    """

    spans: Mapping[str, tuple[Span, ...]]

    def covers(self, reason: str, offset: int) -> bool:
        """Return whether the dead letter with this reason and offset was decided."""
        spans = (*self.spans.get(ALL_REASONS, ()), *self.spans.get(reason, ()))
        return any(start <= offset < end for start, end in spans)

    def with_span(self, reason: str, start: int, end: int) -> "Replayed":
        """Return a log with one more span of a reason.

        Args:
            reason: The reason, or `ALL_REASONS`.
            start: First offset.
            end: Offset after the last.
        """
        if start >= end:
            return self
        spans = {**self.spans, reason: _joined((*self.spans.get(reason, ()), (start, end)))}
        if reason == ALL_REASONS:
            spans = {
                name: tuple(span for span in own if name == reason or not _is_within(span, spans[reason]))
                for name, own in spans.items()
            }
        return Replayed({name: own for name, own in spans.items() if own})

    def since(self, begin: int) -> "Replayed":
        """Return a log without the spans before this offset."""
        kept = {reason: tuple(span for span in spans if span[1] > begin) for reason, spans in self.spans.items()}
        return Replayed({reason: spans for reason, spans in kept.items() if spans})

    def text(self, max_bytes: int) -> str:
        """Return the log as text, which `parse_replay_log` reads.

        Raises:
            TooManySpansError: The text would have more than `max_bytes`.
        """
        text = msgspec.json.encode(self.spans)
        if len(text) > max_bytes:
            raise TooManySpansError(f"the replay log needs {len(text)} bytes, but Kafka stores at most {max_bytes}")
        return text.decode()


def parse_replay_log(text: str) -> Replayed:
    """Parse a log from its text. Empty: an empty log.

    Raises:
        ValueError: The text is no replay log.
    """
    try:
        return Replayed(msgspec.json.decode(text or "{}", type=dict[str, tuple[Span, ...]]))
    except msgspec.MsgspecError as error:
        raise ValueError(f"spans of offsets expected: {error}") from None


def _joined(spans: tuple[Span, ...]) -> tuple[Span, ...]:
    """Join overlapping and adjacent spans."""
    joined: list[Span] = []
    for start, end in sorted(spans):
        if joined and start <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(joined[-1][1], end))
        else:
            joined.append((start, end))
    return tuple(joined)


def _is_within(span: Span, spans: tuple[Span, ...]) -> bool:
    return any(start <= span[0] and span[1] <= end for start, end in spans)
