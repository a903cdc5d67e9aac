"""Remember which alerts have begun and not ended, and the newest dead letters, counted by reason."""

from collections import Counter, OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass, field

from nearstream.schemas.alerts.alert import ALL_COLLECTIONS, Alert
from nearstream.schemas.documents.document import from_milliseconds
from nearstream.schemas.documents.record import ConsumerRecord
from nearstream.schemas.live.state import LiveLetter, LiveLetterDetail, LiveLetters, LiveReason
from nearstream.schemas.topics.codec import decode_json
from nearstream.schemas.topics.dead_letter import StoredDeadLetter
from nearstream.streams.alerting.counting import Silences

ALERTS = 256
_STORM = "duplicate_storm"
_FLOOD = "label_flood"  # ends when somebody decides
_ENDLESS = ("new_family_of_size", "new_family_on_sites")
_SHOWN_MS = 3_600_000  # for an alert that has no end
LETTERS = 200
_REASONS = 64  # that are counted apart, because a reason is a text of a record
_VALUE_BYTES = 4096
_TEXT_BYTES, _HEADERS, _TEXT_CHARACTERS = 1024, 32, 256
_MINUTE_MS, _MINUTES = 60_000, 60


class Alarms:
    """The newest alert of each subject, of at most `ALERTS` subjects."""

    def __init__(self) -> None:
        self._newest: OrderedDict[tuple[str, str, str], Alert] = OrderedDict()
        self.said = Silences()  # by persons
        self._decided: frozenset[str] = frozenset()

    def add(self, alert: Alert) -> None:
        """Take an alert. One that is delivered again after its end changes nothing."""
        subject = (alert.name, alert.collection, alert.subject)
        known = self._newest.get(subject)
        if known is not None and (known.since, known.state == "resolved") >= (alert.since, alert.state == "resolved"):
            return
        self._newest[subject] = alert
        self._newest.move_to_end(subject)
        if len(self._newest) > ALERTS:
            self._newest.popitem(last=False)

    def take(self, record: ConsumerRecord) -> None:
        """Take the alert of a record."""
        self.add(decode_json(Alert, record.value or b""))

    def is_storm(self, collection: str, family: str) -> bool:
        """Return whether a storm of a family has begun and not ended."""
        alert = self._newest.get((_STORM, collection, family))
        return alert is not None and alert.state == "firing"

    def founder(self, family: str) -> tuple[str, str] | None:
        """Return collection and id of the founder that an alert names, or None."""
        for (_, collection, subject), alert in reversed(self._newest.items()):
            if subject == family and alert.founder:
                return collection, alert.founder
        return None

    def floods(self) -> tuple[Alert, ...]:
        """Return the alerts about suspended labels, also about those that somebody has decided about."""
        return tuple(each for each in self._newest.values() if each.name == _FLOOD)

    def decide(self, floods: Iterable[Alert]) -> None:
        """Take the alerts about labels that somebody has decided about, in place of those before."""
        self._decided = frozenset(each.event_id for each in floods)

    def firing(self, collection: str, now_ms: int) -> tuple[Alert, ...]:
        """Return the alerts of a collection that have not ended, and those about all tenants, the newest first.

        Without a collection those of all are returned.
        """
        known = (each for each in self._newest.values() if each.event_id not in self._decided)
        shown = [each for each in known if _is_shown(each, now_ms)]
        own = [each for each in shown if collection in ("", each.collection) or each.collection == ALL_COLLECTIONS]
        return tuple(sorted(own, key=lambda alert: (alert.since, alert.event_id), reverse=True))


def _is_shown(alert: Alert, now_ms: int) -> bool:
    is_recent = alert.name not in _ENDLESS or alert.since.timestamp() * 1000 > now_ms - _SHOWN_MS
    return alert.state == "firing" and is_recent


@dataclass
class _Reason:
    count: int = 0
    newest_ms: int = 0
    minutes: Counter[int] = field(default_factory=Counter)


class Letters:
    """The newest dead letters, at most `LETTERS`, with the first bytes of their records."""

    def __init__(self) -> None:
        self.why = ""  # Why dead letters cannot be read now. Empty: they can.
        self._letters: OrderedDict[str, LiveLetterDetail] = OrderedDict()
        self._reasons: dict[str, _Reason] = {}

    def add(self, dead_letter: StoredDeadLetter) -> None:
        """Take a dead letter, unless it is in memory already, as one that is delivered again."""
        if dead_letter.dead_id in self._letters:
            return
        detail = _detail(dead_letter)
        self._letters[dead_letter.dead_id] = detail
        if len(self._letters) > LETTERS:
            self._letters.popitem(last=False)
        name, written_ms = detail.letter.reason, dead_letter.record.timestamp_ms
        if name in self._reasons or len(self._reasons) < _REASONS:
            reason = self._reasons.setdefault(name, _Reason())
            reason.count += 1
            reason.newest_ms = max(reason.newest_ms, written_ms)
            reason.minutes[written_ms // _MINUTE_MS] += 1
            oldest = reason.newest_ms // _MINUTE_MS - _MINUTES
            for minute in [each for each in reason.minutes if each <= oldest]:
                del reason.minutes[minute]

    def within_an_hour(self, now_ms: int) -> int:
        """Return how many dead letters were written within the last hour."""
        return sum(sum(_last_hour(reason, now_ms)) for reason in self._reasons.values())

    def shown(self, now_ms: int) -> LiveLetters:
        """Return the newest dead letters, and their reasons."""
        ranked = sorted(self._reasons.items(), key=lambda each: (-each[1].count, each[0]))
        reasons = (
            LiveReason(
                reason=name,
                count=reason.count,
                minutes=_last_hour(reason, now_ms),
                newest=from_milliseconds(reason.newest_ms),
            )
            for name, reason in ranked
        )
        newest = sorted(self._letters.values(), key=lambda each: each.letter.written_at, reverse=True)
        return LiveLetters(why=self.why, reasons=tuple(reasons), letters=tuple(each.letter for each in newest))

    def detail(self, dead_id: str) -> LiveLetterDetail | None:
        """Return a dead letter with its record, None if it is not in memory."""
        return self._letters.get(dead_id)


def _last_hour(reason: _Reason, now_ms: int) -> tuple[int, ...]:
    last = now_ms // _MINUTE_MS
    return tuple(reason.minutes[minute] for minute in range(last - _MINUTES + 1, last + 1))


def _detail(dead_letter: StoredDeadLetter) -> LiveLetterDetail:
    original = dead_letter.original
    return LiveLetterDetail(
        letter=_letter(dead_letter, original),
        sha256=dead_letter.sha256[:_TEXT_CHARACTERS],
        payload=dead_letter.payload[:_TEXT_CHARACTERS],
        key=_text(original.key),
        headers=tuple((name[:_TEXT_CHARACTERS], _text(value)) for name, value in original.headers[:_HEADERS]),
        value=(original.value or b"")[:_VALUE_BYTES].hex(),
    )


def _letter(dead_letter: StoredDeadLetter, original: ConsumerRecord) -> LiveLetter:
    return LiveLetter(
        id=dead_letter.dead_id,
        reason=dead_letter.reason[:_TEXT_CHARACTERS],
        stage=dead_letter.stage[:_TEXT_CHARACTERS],
        detail=dead_letter.detail[:_TEXT_CHARACTERS],
        came_from=dead_letter.came_from,
        topic=original.topic[:_TEXT_CHARACTERS],
        partition=original.partition,
        offset=original.offset,
        written_at=from_milliseconds(dead_letter.record.timestamp_ms),
        worker=dead_letter.worker[:_TEXT_CHARACTERS],
        size=dead_letter.size,
        replays=dead_letter.replays,
    )


def _text(value: bytes | None) -> str | None:
    return None if value is None else value[:_TEXT_BYTES].decode("utf-8", "backslashreplace")
