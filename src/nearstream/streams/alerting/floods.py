"""From the growth of a labelled family to the alert that too many match its label."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from nearstream.schemas.verdicts.verdict import DocumentVerdict
from nearstream.streams.alerting.counting import Rule, Subject, Tally, begun, milliseconds, with_alert
from nearstream.streams.store.limits import HOUR_MS, SLOT_MS

COPIES_MIN, ADDRESSES_MIN = 20, 10  # rates before a label that are taken for no less than this


@dataclass(frozen=True)
class LabelledGrowth:
    """How fast a labelled family grows."""

    before: int  # copies within an hour before its first label
    copies: int  # those within the last hour
    senders: int  # distinct senders of these, at most 256
    recipients: int  # distinct recipients of these, at most 256


def rate_before(joins: Sequence[tuple[int, int]], at_ms: int) -> int:
    """Return the copies within an hour that a family had before a time: within the last one, or the busiest one.

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
