"""Print the verdicts of nearstream, each once, and take back those about removed documents.

Needs `pip install aiokafka` and nothing of nearstream. The rules are in docs/events.md: an id is printed once, a
retraction voids the verdicts about earlier states of its document, unknown fields and types are passed over.

    python consumer.py 127.0.0.1:9092               all verdicts so far, then new ones until Ctrl-C
    python consumer.py 127.0.0.1:9092 --until-end   all verdicts so far
"""

import argparse
import asyncio
import json
from collections import OrderedDict
from datetime import datetime, timedelta
from typing import Any

from aiokafka import AIOKafkaConsumer

Event = dict[str, Any]

TOPIC = "nearstream.verdicts.v1"
MOST = 100_000  # verdicts, and removed documents, that are remembered: later repeats would be printed again


class Verdicts:
    """The verdicts that hold, by id."""

    def __init__(self) -> None:
        """Begin without any."""
        self.verdicts: OrderedDict[str, Event] = OrderedDict()
        self.removals: OrderedDict[tuple[str, ...], Event] = OrderedDict()

    def receive(self, value: bytes) -> list[str]:
        """Take one record of the topic, and return the lines that it gives."""
        event = json.loads(value)
        if event["type"] == "retraction":
            document = (event["collection"], event["document_id"])
            remember(self.removals, (*document, event.get("topic"), event.get("partition")), event)
            void = [each for each in self.verdicts.values() if is_void(each, event)]
            for each in void:
                del self.verdicts[each["event_id"]]
            return [line("-", each) for each in void]
        if event["type"] != "verdict" or event["event_id"] in self.verdicts or self.is_removed(event):
            return []
        remember(self.verdicts, event["event_id"], event)
        return [line("+", event)]

    def is_removed(self, verdict: Event) -> bool:
        """Return whether a removal that arrived before is about this state of the document."""
        return any(is_void(verdict, removal) for removal in self.removals.values())


def is_void(verdict: Event, removal: Event) -> bool:
    """Return whether a verdict is about a state of the removed document from before its removal."""
    if (verdict["collection"], verdict["id"]) != (removal["collection"], removal["document_id"]):
        return False
    removed_at = datetime.fromisoformat(removal["removed_at"])
    sent_at = datetime.fromisoformat(verdict.get("sent_at") or verdict["observed_at"])
    places = [(record.get("topic"), record.get("partition")) for record in (verdict, removal)]
    if places[0] == places[1] and "offset" in verdict and "offset" in removal:
        # A state sent later than that is of a topic that was deleted and made anew, whose offsets began again.
        is_of_a_new_topic = "sent_at" in verdict and sent_at > removed_at + timedelta(seconds=1)
        return bool(verdict["offset"] < removal["offset"]) and not is_of_a_new_topic
    return sent_at <= removed_at


def remember(kept: OrderedDict[Any, Event], key: object, value: Event) -> None:
    """Keep a value, and forget the oldest one if there are too many."""
    kept[key] = value
    if len(kept) > MOST:
        kept.popitem(last=False)


def line(sign: str, verdict: Event) -> str:
    """Return a line for a verdict: its sign, the verdict, the document, and the one that it is a copy of."""
    of = verdict["of"]["id"] if verdict["of"] else ""
    return "\t".join([sign, verdict["verdict"], verdict["id"], of])


async def run(address: str, topic: str, *, until_end: bool) -> None:
    """Print the verdicts of a topic."""
    # Without a group it reads all partitions, and commits nothing.
    consumer = AIOKafkaConsumer(topic, bootstrap_servers=address, auto_offset_reset="earliest")
    await consumer.start()
    try:
        partitions = consumer.assignment()
        ends = await consumer.end_offsets(partitions)
        verdicts = Verdicts()
        while not until_end or any([await consumer.position(each) < ends[each] for each in partitions]):
            for records in (await consumer.getmany(timeout_ms=500)).values():
                for record in records:
                    for text in verdicts.receive(record.value):
                        print(text, flush=True)  # noqa: T201 - the output of the example
    finally:
        await consumer.stop()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Print the verdicts of nearstream.")
    parser.add_argument("address", metavar="HOST:PORT", help="a broker of Kafka")
    parser.add_argument("--topic", default=TOPIC, metavar="T", help=f"the topic (default {TOPIC})")
    parser.add_argument("--until-end", action="store_true", help="stop after the verdicts that exist now")
    options = parser.parse_args()
    asyncio.run(run(options.address, options.topic, until_end=options.until_end))
