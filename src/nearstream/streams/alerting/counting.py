"""From verdicts and dead letters to alerts about what happens too often.

All is counted by the times of the documents (event time), never by a clock, so a replay counts as the first run did.
"""

from bisect import bisect_right
from collections import Counter, OrderedDict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

import msgspec
from msgspec import UNSET, UnsetType

from nearstream.schemas.alerts.alert import (
    ORIGIN_CHARACTERS,
    ORIGINS_MAX,
    Alert,
    AlertName,
    Silence,
    alert_id,
    silence_key,
)
from nearstream.schemas.documents.document import YEAR_9999_MS
from nearstream.schemas.verdicts.verdict import DocumentVerdict
from nearstream.streams.store.limits import HOUR_MS, SLOT_MS

ON_SITES: AlertName = "new_family_on_sites"
ENDED_BY_SILENCE: tuple[AlertName, ...] = ("duplicate_storm", "dead_letters")
KEPT_LIMITS = 4  # a tally keeps at most this multiple of the limit of its rule
KEPT_ALERTS = 8
_UNDER_WAY = 100  # verdicts of a family that may overtake one another


@dataclass(frozen=True)
class Rule:
    """When to alert."""

    name: AlertName  # what is counted
    # An alert begins above this number within the window, and ends at half of it. Alerts of new families begin at this
    # number of documents, or of sites.
    limit: int
    window_seconds: int  # the window, at least 1
    collections: frozenset[str] = frozenset()  # The tenants for which the rule is. Empty: all. Dead letters have none.

    @property
    def window_ms(self) -> int:
        """The window in milliseconds."""
        return 1000 * self.window_seconds

    def concerns(self, collection: str) -> bool:
        """Return whether the rule is for the documents of this collection."""
        return not self.collections or collection in self.collections


class Subject(msgspec.Struct, frozen=True):
    """What an alert is about."""

    collection: str  # the tenant, `*` for all
    name: str  # id of a family, or reason of dead letters
    scheme: str  # name of the scheme
    # Id of the founder of the family, None if it is unknown. UNSET for dead letters.
    founder: str | UnsetType | None = UNSET

    @property
    def is_numbered(self) -> bool:
        """Whether its arrivals have ordinals, as the members of a family do."""
        return self.founder is not UNSET


class Arrival(msgspec.Struct, frozen=True, array_like=True, order=True):
    """One that is counted: a member of a family, or a dead letter."""

    at_ms: int  # time of the document in milliseconds since 1970
    number: int  # Ordinal in the family. Of a dead letter, a number that its repeats share.
    event_id: str  # id of the verdict or dead letter


class Caused(msgspec.Struct, frozen=True, array_like=True):
    """An alert with what caused it."""

    # Id of an event of the batch that caused the alert. When this event is delivered again, the alert is sent again.
    # Empty: there was no event, only silence.
    cause: str
    alert: Alert  # the alert


class Tally(msgspec.Struct, frozen=True, array_like=True):
    """What a rule remembers of one subject. Its size has a bound."""

    # Those of the last window, in order of time, at most `KEPT_LIMITS` times the limit.
    arrivals: tuple[Arrival, ...] = ()
    passed: int = 0  # The largest ordinal that has left the window. Lower ones have been counted before.
    heard_ms: int = 0  # timestamp of the newest record
    alerts: tuple[Caused, ...] = ()  # the newest alerts, beginnings and ends, at most `KEPT_ALERTS`
    is_sent: bool = True  # whether the newest alert is sent, or will be when its cause is delivered again
    before: int | None = None  # of a labelled family: its copies within an hour before its first label

    @property
    def is_firing(self) -> bool:
        """Whether the newest alert is a beginning."""
        return bool(self.alerts) and self.alerts[-1].alert.state == "firing"


def joined(verdict: DocumentVerdict, record_ms: int) -> Arrival | None:
    """Return the arrival of a document in its family.

    A document that is dated later than its record counts at the time of the record, so that a wrong clock of a producer
    does not move the window into the future.

    Returns:
        None if the document is the first of its family, or was a member before.
    """
    is_own = verdict.of is not None and verdict.of.id == verdict.id
    if verdict.family.ordinal < 2 or verdict.verdict == "unchanged" or is_own:
        return None
    return Arrival(min(milliseconds(verdict.observed_at), record_ms), verdict.family.ordinal, verdict.event_id)


def count(rule: Rule, subject: Subject, arrivals: Sequence[Arrival], heard_ms: int, tally: Tally) -> Tally:
    """Count arrivals of a batch, whose newest record has `heard_ms`, and begin or end alerts.

    The result depends on which arrivals are counted, not on their order, except for those that come more than a window
    late: they are left out. Arrivals that were counted before change nothing.
    """
    merged = _merged(rule, tally, arrivals)
    newest_ms = merged[-1].at_ms if merged else 0
    cause = max(arrivals).event_id
    while (alert := _next(rule, subject, tally, merged, newest_ms)) is not None:
        tally = with_alert(tally, cause, alert)
    kept = [each for each in merged if each.at_ms > newest_ms - rule.window_ms][-KEPT_LIMITS * rule.limit :]
    passed = [each.number for each in tally.arrivals if each.at_ms <= newest_ms - rule.window_ms]
    return msgspec.structs.replace(
        tally,
        arrivals=tuple(kept),
        passed=max((tally.passed, *passed)) if subject.is_numbered else 0,
        heard_ms=max(tally.heard_ms, heard_ms),
    )


def find_size(rule: Rule, subject: Subject, verdicts: Sequence[DocumentVerdict], tally: Tally) -> Tally:
    """Begin an alert if a new family has reached the limit.

    A family is new as long as its founder was observed at most a window before the document that joins.
    """
    large = [each for each in verdicts if reaches(rule, each)]
    if not large or tally.alerts:
        return tally
    first = min(large, key=lambda each: (each.family.ordinal, each.event_id))
    since_ms, size = milliseconds(first.family.first_seen), first.family.ordinal
    value = first.family.sites if rule.name == ON_SITES else size
    return with_alert(tally, first.event_id, begun(rule, subject, since_ms, (first.event_id,), value, size))


def reaches(rule: Rule, verdict: DocumentVerdict) -> bool:
    """Return whether a document shows that a new family has reached the size of a rule.

    It is the one with this ordinal, in whatever order verdicts arrive. If it was removed before it got its verdict, a
    much later one shows it too. Every one shows on how many sites the family is.
    """
    age_ms = milliseconds(verdict.observed_at) - milliseconds(verdict.family.first_seen)
    if age_ms > rule.window_ms:
        return False
    if rule.name == ON_SITES:
        return verdict.family.sites >= rule.limit
    ordinal = verdict.family.ordinal
    return ordinal == rule.limit or ordinal >= rule.limit + _UNDER_WAY


def end_quiet(rule: Rule, clock_ms: int, tally: Tally) -> Tally:
    """End the alert of a subject of which nothing has been heard for a whole window."""
    if not tally.is_firing or tally.heard_ms + rule.window_ms > clock_ms:
        return tally
    ended = _end(rule, tally.alerts[-1].alert, tally.arrivals, before_ms=None)
    return tally if ended is None else msgspec.structs.replace(with_alert(tally, "", ended), is_sent=False)


def adopted(alert: Alert, tally: Tally) -> Tally:
    """Return an empty tally with an alert that is firing. Another tally stays."""
    if tally.alerts or tally.arrivals:
        return tally
    since_ms, number = milliseconds(alert.since), 0 if alert.size is UNSET else alert.size
    arrivals = (Arrival(since_ms, number, alert.event_id),)
    return Tally(arrivals=arrivals, heard_ms=since_ms, alerts=(Caused("", alert),))


def alerts_of(tally: Tally, event_ids: Collection[str]) -> list[Alert]:
    """Return the alerts that these events have caused, now or in an earlier delivery."""
    return [caused.alert for caused in tally.alerts if caused.cause in event_ids]


def _merged(rule: Rule, tally: Tally, arrivals: Iterable[Arrival]) -> list[Arrival]:
    """Return all arrivals in order of time. A number that was counted before keeps its time."""
    late_ms = tally.arrivals[-1].at_ms - rule.window_ms if tally.arrivals else -1
    new = [each for each in arrivals if each.number > tally.passed and each.at_ms > late_ms]
    by_number = {each.number: each for each in sorted(new, reverse=True)}
    return sorted((by_number | {each.number: each for each in tally.arrivals}).values())


def _next(rule: Rule, subject: Subject, tally: Tally, merged: Sequence[Arrival], newest_ms: int) -> Alert | None:
    if tally.is_firing:
        return _end(rule, tally.alerts[-1].alert, merged, before_ms=newest_ms)
    until = tally.alerts[-1].alert.until if tally.alerts else None
    after_ms = -1 if until is None else milliseconds(until)
    times = [each.at_ms for each in merged]
    for place, each in enumerate(merged):
        within = place + 1 - bisect_right(times, each.at_ms - rule.window_ms)
        if each.at_ms > after_ms and within > rule.limit:
            return begun(rule, subject, each.at_ms, (each.event_id,), within, each.number)
    return None


def _end(rule: Rule, begun: Alert, arrivals: Sequence[Arrival], before_ms: int | None) -> Alert | None:
    """Return the end of an alert, once half of the limit is left.

    Only times before `before_ms` count, because more arrivals of that millisecond may come.
    """
    times = [each.at_ms for each in arrivals]
    since_ms = milliseconds(begun.since)
    for left_ms in (time + rule.window_ms for time in times):
        if left_ms <= since_ms or (before_ms is not None and left_ms >= before_ms):
            continue
        within = bisect_right(times, left_ms) - bisect_right(times, left_ms - rule.window_ms)
        if within <= rule.limit // 2:
            numbers = [each.number for each in arrivals if each.at_ms <= left_ms]
            size = begun.size if begun.size is UNSET else max((begun.size, *numbers))
            return msgspec.structs.replace(
                begun,
                event_id=alert_id(begun.collection, begun.name, begun.subject, "resolved", since_ms, begun.scheme),
                state="resolved",
                value=float(within),
                until=_time(left_ms),
                size=size,
            )
    return None


def begun(rule: Rule, subject: Subject, since_ms: int, events: tuple[str, ...], value: int, size: int) -> Alert:
    """Return the beginning of an alert."""
    return Alert(
        event_id=alert_id(subject.collection, rule.name, subject.name, "firing", since_ms, subject.scheme),
        collection=subject.collection,
        scheme=subject.scheme,
        name=rule.name,
        state="firing",
        subject=subject.name,
        value=float(value),
        limit=float(rule.limit),
        window_seconds=rule.window_seconds,
        since=_time(since_ms),
        until=None,
        events=events,
        size=size if subject.is_numbered else UNSET,
        founder=subject.founder,
    )


def with_alert(tally: Tally, cause: str, alert: Alert) -> Tally:
    """Add the newest alert to a tally."""
    return msgspec.structs.replace(tally, alerts=(*tally.alerts, Caused(cause, alert))[-KEPT_ALERTS:], is_sent=True)


def milliseconds(time: datetime) -> int:
    """Return a time in milliseconds since 1970."""
    return round(time.timestamp() * 1000)


def _time(ms: int) -> datetime:
    return datetime.fromtimestamp(min(ms, YEAR_9999_MS) / 1000, UTC)


def name_origins(origins: tuple[str, ...], former: Tally, tally: Tally) -> Tally:
    """Say in the alerts that have begun since the former tally where their documents come from."""
    if not origins:
        return tally
    known = {each.alert.event_id for each in former.alerts}
    alerts = (
        each
        if each.alert.event_id in known or each.alert.state != "firing"
        else Caused(each.cause, msgspec.structs.replace(each.alert, origins=origins))
        for each in tally.alerts
    )
    return msgspec.structs.replace(tally, alerts=tuple(alerts))


def origins_of(verdicts: Iterable[DocumentVerdict]) -> tuple[str, ...]:
    """Return the most frequent hosts and labels of documents, or their sources, each with its name."""
    found: Counter[str] = Counter()
    for verdict in verdicts:
        host = (verdict.url or "").partition("://")[2].partition("/")[0]
        named = [("host", host), *verdict.labels.items()]
        found.update(f"{name} {value}"[:ORIGIN_CHARACTERS] for name, value in named if value)
    return tuple(origin for origin, _ in found.most_common(ORIGINS_MAX))


SILENCES = 256


class Silences:
    """What was said last about each of at most `SILENCES` subjects."""

    def __init__(self) -> None:
        self._said: OrderedDict[bytes, Silence] = OrderedDict()

    def say(self, key: bytes, silence: Silence | None) -> None:
        """Take what a person says about a subject, None if it is taken back."""
        self._said.pop(key, None)
        if silence is not None:
            self._said[key] = silence
        if len(self._said) > SILENCES:
            self._said.popitem(last=False)

    def of(self, alert: Alert, now_ms: int) -> Silence | None:
        """Return what was said about an alert if it is silent now."""
        said = self._said.get(silence_key(alert.collection, alert.name, alert.subject))
        return said if said is not None and said.covers(alert, now_ms) else None

    def is_silent(self, alert: Alert, now_ms: int) -> bool:
        """Return whether the subject of an alert is silent for a time, not only seen."""
        said = self.of(alert, now_ms)
        return said is not None and said.until is not None

    def holds_back(self, alert: Alert, now_ms: int) -> bool:
        """Return whether an alert is held back from webhooks.

        The end of an alert is held back only if it began in the silence.
        """
        if alert.state == "firing":
            return self.of(alert, now_ms) is not None
        said = self._said.get(silence_key(alert.collection, alert.name, alert.subject))
        return said is not None and said.until is not None and said.since <= alert.since < said.until


COPIES_MIN, ADDRESSES_MIN = 20, 10  # rates before a label that are taken for no less than this


@dataclass(frozen=True)
class LabelledGrowth:
    """How fast a labelled family grows."""

    before: int  # copies within an hour before its first label
    copies: int  # those within the last hour
    senders: int  # distinct senders of these, at most 256
    recipients: int  # distinct recipients of these, at most 256


def rate_before(joins: Sequence[tuple[int, int]], at_ms: int) -> int:
    """Return the copies that a family had before a time, within the last or the busiest hour.

    `joins` has slots: the time divided by `SLOT_MS`, and how many joined.
    """
    last_hour = sum(
        count * min(at_ms / SLOT_MS - slot, 1)  # of the slot of the label, the part before it
        for slot, count in joins
        if at_ms - HOUR_MS < (slot + 1) * SLOT_MS and slot * SLOT_MS <= at_ms
    )
    hours = Counter[int]()
    for slot, count in joins:
        if (slot + 1) * SLOT_MS <= at_ms:
            hours[slot * SLOT_MS // HOUR_MS] += count
    return max((round(last_hour), *hours.values()))


def find_flood(
    rule: Rule, subject: Subject, growth: LabelledGrowth | None, verdicts: Sequence[DocumentVerdict], tally: Tally
) -> Tally:
    """Begin an alert if far more matches a label than before it.

    The rule limits the rate as a multiple of the rate before. Without a label there is no growth.
    """
    if growth is None:
        return Tally()
    if tally.alerts:
        return tally
    # The slots before the label are forgotten one by one, so what was known first is kept.
    before = growth.before if tally.before is None else tally.before
    tally = msgspec.structs.replace(tally, before=before)
    found = [
        (count, rule.limit * max(before, least))
        for count, least in (
            (growth.copies, COPIES_MIN),
            (growth.senders, ADDRESSES_MIN),
            (growth.recipients, ADDRESSES_MIN),
        )
        if count >= rule.limit * max(before, least)
    ]
    if not found:
        return tally
    value, limit = found[0]
    newest = max(verdicts, key=lambda each: (each.observed_at, each.event_id))
    alert = begun(rule, subject, milliseconds(newest.observed_at), (newest.event_id,), value, newest.family.ordinal)
    return with_alert(tally, newest.event_id, msgspec.structs.replace(alert, limit=float(limit)))
