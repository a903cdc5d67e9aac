"""Hand a vector store only documents that are new enough, as workers on Kafka say.

Needs `pip install aiokafka` and nothing of nearstream. `embed` stands for your model and store: it takes an id and a
text. A text waits here until the verdict about its record comes. before_embeddings.py keeps single passages instead.
"""

import asyncio
import json
from collections.abc import Callable, Iterator
from typing import Any

from aiokafka import AIOKafkaConsumer

DOCUMENTS, VERDICTS = "nearstream.documents.v1", "nearstream.verdicts.v1"
MOST_NEW = 100  # characters of a document that is left out
MOST_WAITING = 100_000  # records and verdicts that wait for each other
Place = tuple[int, int]  # partition and offset of a record


def is_new(verdict: dict[str, Any]) -> bool:
    """Return whether a document has more than some new characters, or is like no other."""
    if verdict["verdict"] in ("exact_duplicate", "unchanged"):
        return False
    return not verdict.get("sources") or verdict["novel"]["value"] > MOST_NEW


def new_texts(texts: dict[Place, str], verdicts: dict[Place, dict[str, Any]]) -> Iterator[tuple[str, str]]:
    """Take out what has its verdict, and yield the ids and texts of new documents."""
    for place in sorted(texts.keys() & verdicts.keys()):
        verdict, text = verdicts.pop(place), texts.pop(place)
        if is_new(verdict):
            yield verdict["id"], text
    for waiting in (texts, verdicts):  # such as the texts of refused records, and repeated verdicts
        for place in list(waiting)[:-MOST_WAITING]:
            del waiting[place]


async def run(address: str, embed: Callable[[str, str], None], prefix: str = "", *, until_end: bool = False) -> None:
    """Embed each new document, up to the end of both topics or for good."""
    topics = (prefix + DOCUMENTS, prefix + VERDICTS)
    consumer = AIOKafkaConsumer(*topics, bootstrap_servers=address, auto_offset_reset="earliest")
    texts, verdicts = dict[Place, str](), dict[Place, dict[str, Any]]()
    async with consumer:
        ends = await consumer.end_offsets(consumer.assignment())
        while not until_end or any([await consumer.position(each) < end for each, end in ends.items()]):
            for of, records in (await consumer.getmany(timeout_ms=500)).items():
                for record in records:
                    value = json.loads(record.value or b"{}")
                    if of.topic == topics[0] and "text" in value:
                        texts[of.partition, record.offset] = value["text"]
                    elif value.get("type") == "verdict":
                        verdicts[value["partition"], value["offset"]] = value
            for name, text in new_texts(texts, verdicts):
                await asyncio.to_thread(embed, name, text)
