"""Which letters of a partition were sent again before, as a text that stands beside a committed offset."""

from collections.abc import Mapping
from dataclasses import dataclass

import msgspec

Span = tuple[int, int]
ALL_REASONS = ""


class TooManySpansError(Exception):
    """More separate replays than a note can hold."""


@dataclass(frozen=True)
class Replayed:
    """Offsets of letters that were decided, by the reason that was asked for.

    Attributes:
        spans: Reason, or `ALL_REASONS`, to spans of offsets, first to behind the last; in order, apart.
    """

    spans: Mapping[str, tuple[Span, ...]]

    def covers(self, reason: str, offset: int) -> bool:
        """Whether the letter at this offset, of this reason, was decided."""
        asked = (*self.spans.get(ALL_REASONS, ()), *self.spans.get(reason, ()))
        return any(start <= offset < end for start, end in asked)

    def and_span(self, reason: str, start: int, end: int) -> "Replayed":
        """The same with all letters of this reason from `start` up to, but without, `end`."""
        if start >= end:
            return self
        spans = {**self.spans, reason: _joined((*self.spans.get(reason, ()), (start, end)))}
        if reason == ALL_REASONS:
            spans = {
                name: tuple(span for span in own if name == reason or not _within(span, spans[reason]))
                for name, own in spans.items()
            }
        return Replayed({name: own for name, own in spans.items() if own})

    def since(self, begin: int) -> "Replayed":
        """The same without what the topic no longer holds."""
        kept = {reason: tuple(span for span in spans if span[1] > begin) for reason, spans in self.spans.items()}
        return Replayed({reason: spans for reason, spans in kept.items() if spans})

    def text(self, max_bytes: int) -> str:
        """As text; `parsed` reads it.

        Raises:
            TooManySpansError: It would have more than `max_bytes`.
        """
        text = msgspec.json.encode(self.spans)
        if len(text) > max_bytes:
            raise TooManySpansError(f"{len(text)} bytes of notes about replays, at most {max_bytes} expected")
        return text.decode()


def parsed(text: str) -> Replayed:
    """What `Replayed.text` gave; nothing, if it is empty.

    Raises:
        ValueError: It is no such text.
    """
    try:
        return Replayed(msgspec.json.decode(text or "{}", type=dict[str, tuple[Span, ...]]))
    except msgspec.MsgspecError as error:
        raise ValueError(f"spans of offsets expected: {error}") from None


def _joined(spans: tuple[Span, ...]) -> tuple[Span, ...]:
    """The same offsets in as few spans as can be."""
    joined: list[Span] = []
    for start, end in sorted(spans):
        if joined and start <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(joined[-1][1], end))
        else:
            joined.append((start, end))
    return tuple(joined)


def _within(span: Span, spans: tuple[Span, ...]) -> bool:
    return any(start <= span[0] and span[1] <= end for start, end in spans)
