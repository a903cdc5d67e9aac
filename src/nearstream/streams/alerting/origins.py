"""Where the documents come from that begin an alert."""

from collections import Counter
from collections.abc import Iterable

import msgspec

from nearstream.schemas.alerts.alert import ORIGIN_CHARACTERS, ORIGINS_MAX
from nearstream.schemas.verdicts.verdict import DocumentVerdict
from nearstream.streams.alerting.counting import Caused, Tally


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
