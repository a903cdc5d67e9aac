"""What the dead-letter topic says about a record that was refused."""

import re
from dataclasses import dataclass

from schemas.dead_letter import ID_HEADER, REPLAYS_HEADER, Payload, dead_id, replays_of
from schemas.record import Headers, Outgoing, Record, header

MAX_REPLAYS = 3
_OURS = "nearstream-dead-"
_NUMBER = re.compile(r"-?[0-9]{1,19}")


@dataclass(frozen=True)
class KeptLetter:
    """A dead letter as it stands on its topic.

    Attributes:
        letter: The record of the dead-letter topic.
        original: The refused record, as far as the letter keeps it.
        reason: A `Reason`, or one of a later release.
        stage: A `Stage`, or one of a later release.
        detail: Path with expectation.
        worker: Who refused it.
        replays: How often the record had been sent again when it was refused.
        size: Bytes of the original value.
        sha256: Of the original value, 64 hex.
        payload: A `Payload`, or one of a later release.
    """

    letter: Record
    original: Record
    reason: str
    stage: str
    detail: str
    worker: str
    replays: int
    size: int
    sha256: str
    payload: str

    @property
    def dead_id(self) -> str:
        """Deterministic id, 32 hex; letters that say the same again have the same."""
        return dead_id(self.original.topic, self.original.partition, self.original.offset)

    @property
    def is_whole(self) -> bool:
        """Whether all of the original stands in the letter; without a value it does not tell null from empty."""
        return self.payload == Payload.FULL and self.size > 0


def kept_letter(record: Record) -> KeptLetter | None:
    """The letter in a record of the dead-letter topic; None: it is no letter of ours."""
    begin = _begin(record.headers)
    ours = record.headers[begin:]
    topic = _text(ours, "topic")
    try:
        partition, offset, made_ms, size = (
            _number(_text(ours, name)) for name in ("partition", "offset", "timestamp", "bytes")
        )
    except ValueError:
        return None
    if header(ours, ID_HEADER) != dead_id(topic, partition, offset).encode() or min(partition, offset, size) < 0:
        return None
    return KeptLetter(
        letter=record,
        original=Record(topic, partition, offset, made_ms, record.key, record.value, record.headers[:begin]),
        reason=_text(ours, "reason"),
        stage=_text(ours, "stage"),
        detail=_text(ours, "detail"),
        worker=_text(ours, "worker"),
        replays=replays_of(ours),
        size=size,
        sha256=_text(ours, "sha256"),
        payload=_text(ours, "payload"),
    )


def sent_again(letter: KeptLetter, original: Record) -> Outgoing:
    """The refused record on its way back: as it was, its own time included, but for the count of replays."""
    headers: Headers = [pair for pair in original.headers if pair[0] != REPLAYS_HEADER]
    headers.append((REPLAYS_HEADER, str(letter.replays + 1).encode()))
    made_ms = original.timestamp_ms if original.timestamp_ms >= 0 else None
    return Outgoing(original.topic, original.key, original.value, headers, made_ms)


def _begin(headers: Headers) -> int:
    """Where our headers begin: a record that was sent again may have some of that name before."""
    places = [place for place, (name, _) in enumerate(headers) if name == ID_HEADER]
    return places[-1] if places else len(headers)


def _text(headers: Headers, name: str) -> str:
    return (header(headers, _OURS + name) or b"").decode("utf-8", "replace")


def _number(text: str) -> int:
    if not _NUMBER.fullmatch(text):
        raise ValueError(f"a number expected, got {text[:20]!r}")
    return int(text)
