"""Remember which alerts have begun and not ended."""

from collections import OrderedDict
from collections.abc import Iterable

from nearstream.schemas.alerts.alert import ALL_COLLECTIONS, Alert, Silence
from nearstream.streams.alerting.silences import Silences

ALERTS = 256
_STORM = "duplicate_storm"
_FLOOD = "label_flood"  # ends when somebody decides
_ENDLESS = ("new_family_of_size", "new_family_on_sites")
_SHOWN_MS = 3_600_000  # for an alert that has no end


class Alarms:
    """The newest alert of each subject, of at most `ALERTS` subjects."""

    def __init__(self) -> None:
        """Start without alerts."""
        self._newest: OrderedDict[tuple[str, str, str], Alert] = OrderedDict()
        self._silences = Silences()
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

    def silence(self, key: bytes, silence: Silence | None) -> None:
        """Take what a person says about a subject, None if it is taken back."""
        self._silences.say(key, silence)

    def silences(self, alerts: Iterable[Alert], now_ms: int) -> tuple[Silence, ...]:
        """Return what was said about those of these alerts that are silent now."""
        said = (self._silences.of(alert, now_ms) for alert in alerts)
        return tuple(each for each in said if each is not None)

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
