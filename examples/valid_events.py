"""Keep the events that hold: each once, and none that a retraction has voided. Needs nothing of nearstream."""

import json
from datetime import datetime, timedelta
from typing import Any

Event = dict[str, Any]

events: dict[str, Event] = {}
removed: dict[tuple[str, str], list[Event]] = {}


def receive(value: bytes) -> None:
    """Take a record of any topic of events."""
    event = json.loads(value)
    if event["type"] == "retraction":
        removed.setdefault((event["collection"], event["document_id"]), []).append(event)
    else:
        events[event["event_id"]] = event
    for event_id in [event_id for event_id, event in events.items() if is_void(event)]:
        del events[event_id]


def is_void(event: Event) -> bool:
    """Return whether a document that the event is about was removed."""
    about = [event] if event["type"] == "verdict" else [event["newer"], event["older"]]
    return any(is_removed(event["collection"], document) for document in about)


def is_removed(collection: str, document: Event) -> bool:
    """Return whether a removal is about this state of a document."""
    return any(is_before(document, removal) for removal in removed.get((collection, document["id"]), []))


def is_before(document: Event, removal: Event) -> bool:
    """Return whether a state of a document was sent before a removal."""
    removed_at = datetime.fromisoformat(removal["removed_at"])
    sent_at = datetime.fromisoformat(document.get("sent_at") or document["observed_at"])
    places = [(record.get("topic"), record.get("partition")) for record in (document, removal)]
    if places[0] == places[1] and "offset" in document and "offset" in removal:
        is_of_a_new_topic = "sent_at" in document and sent_at > removed_at + timedelta(seconds=1)
        return bool(document["offset"] < removal["offset"]) and not is_of_a_new_topic
    return sent_at <= removed_at
