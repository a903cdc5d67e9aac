"""From the growth of a labelled family to the alert that too many match its label."""

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from nearstream.schemas.verdict import DocumentVerdict
from nearstream.streams.alerting.counting import Rule, Subject, Tally, begun, milliseconds, with_alert
from nearstream.streams.index.family import HOUR_MS, SLOTS_MS, WINDOWS_MS

COPIES_MIN, ADDRESSES_MIN = 20, 10  # rates before a label that are taken for no less than this

_HOURS_OF_DAY = 24


@dataclass(frozen=True)
class LabelledGrowth:
    """How fast a labelled family grows.

    Attributes:
        before: Copies within an hour before its first label.
        copies: Those within the last hour.
        senders: Distinct senders of these, at most 256.
        recipients: Distinct recipients of these, at most 256.
    """

    before: int
    copies: int
    senders: int
    recipients: int


def rate_before(slots: Sequence[tuple[int, int, int]], at_ms: int) -> int:
    """Return the copies within an hour that a family had before a time.

    Where the slots of 5 minutes are no longer stored, the largest one of an hour counts, or the hour of a mean day.

    Args:
        slots: Place of the width in `SLOTS_MS` from 1 on, time divided by the width, and joins.
        at_ms: The time, in milliseconds since 1970.
    """
    last_hour = sum(
        joins * min(at_ms / SLOTS_MS[0] - slot, 1)  # of the slot of the label, the part before it
        for place, slot, joins in slots
        if place == 1 and at_ms - HOUR_MS < (slot + 1) * SLOTS_MS[0] and slot * SLOTS_MS[0] <= at_ms
    )
    ended = [(place, joins) for place, slot, joins in slots if (slot + 1) * SLOTS_MS[place - 1] <= at_ms]
    hours = [joins for place, joins in ended if place == 2]
    days = [joins // _HOURS_OF_DAY for place, joins in ended if place == len(WINDOWS_MS)]
    return max((round(last_hour), *hours, *days))


def find_flood(
    rule: Rule, subject: Subject, growth: LabelledGrowth | None, verdicts: Sequence[DocumentVerdict], tally: Tally
) -> Tally:
    """Begin an alert if far more matches a label than before it.

    Args:
        rule: The rule, whose limit is the multiple of the rate before the label.
        subject: The family.
        growth: Its growth, None if nothing in it is labelled.
        verdicts: Its verdicts of a batch, at least one.
        tally: The former tally.
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
