"""What a person has silenced is held back, and whoever was told of a beginning is told of its end."""

import pytest

from nearstream.schemas.alerts.alert import Silence
from nearstream.schemas.documents.document import from_milliseconds
from nearstream.streams.alerting.counting import Silences
from tests.support.live import NOW_MS, alert

HOUR_MS = 3_600_000


def said(until_ms: int | None) -> Silences:
    """Return silences with one that was given now."""
    silences = Silences()
    silence = Silence(
        collection="news",
        name="duplicate_storm",
        subject="f",
        since=from_milliseconds(NOW_MS),
        until=None if until_ms is None else from_milliseconds(until_ms),
    )
    silences.say(b"news/duplicate_storm/f", silence)
    return silences


@pytest.mark.parametrize(
    ("until_ms", "began_ms", "is_held_back", "is_end_held_back", "is_silent"),
    [
        (NOW_MS + HOUR_MS, NOW_MS + 1, True, True, True),
        (NOW_MS + HOUR_MS, NOW_MS - 1, True, False, True),  # told before it was silenced
        (None, NOW_MS - 1, True, False, False),  # seen: it goes on, and its end is told
        (None, NOW_MS + 1, False, False, False),  # another storm of the family
    ],
)
def test_an_end_is_told_to_those_who_know_of_the_beginning(
    until_ms: int | None, began_ms: int, is_held_back: bool, is_end_held_back: bool, is_silent: bool
) -> None:
    silences, began = said(until_ms), alert("f", since_ms=began_ms)
    assert silences.holds_back(began, NOW_MS + 2) is is_held_back
    assert silences.holds_back(alert("f", "resolved", since_ms=began_ms), NOW_MS + 2) is is_end_held_back
    assert silences.is_silent(began, NOW_MS + 2) is is_silent
    assert not silences.holds_back(alert("other"), NOW_MS + 2)


def test_silence_ends_with_its_time_and_when_it_is_taken_back() -> None:
    silences, began = said(NOW_MS + HOUR_MS), alert("f", since_ms=NOW_MS + 1)
    assert not silences.holds_back(began, NOW_MS + HOUR_MS)
    # The end of what began in silence is held back also later.
    assert silences.holds_back(alert("f", "resolved", since_ms=NOW_MS + 1), NOW_MS + 2 * HOUR_MS)
    silences.say(b"news/duplicate_storm/f", None)
    assert not silences.holds_back(began, NOW_MS + 2)
