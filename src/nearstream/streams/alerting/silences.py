"""Remember which alerts persons have silenced."""

from collections import OrderedDict

from nearstream.schemas.alerts.alert import Alert, Silence, silence_key

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
