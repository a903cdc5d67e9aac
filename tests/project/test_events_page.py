"""docs/events.md shows the messages, topics and headers that the code sends."""

import json
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, get_args

import pytest

from nearstream.schemas.documents.document import Document
from nearstream.schemas.documents.evidence import Evidence
from nearstream.schemas.documents.record import ConsumerRecord
from nearstream.schemas.topics.codec import decode_event, event_headers
from nearstream.schemas.topics.dead_letter import PRIVATE_HEADER, DeadLetter, Reason, outgoing
from nearstream.schemas.topics.table import ALL, SIGNATURES
from nearstream.schemas.verdicts.events import RELATIONS, Event, RelationEvent
from nearstream.schemas.verdicts.verdict import DocumentVerdict
from nearstream.streams.ingest.parse import _FIELD_HEADERS, _LABEL_HEADER, _LIST_HEADERS

ROOT = Path(__file__).parent.parent.parent
EXAMPLES = ROOT / "schemas/examples"
PAGE = (ROOT / "docs/events.md").read_text()


def first_cells(table: str) -> list[str]:
    """Return the names in the first column, in order."""
    cells = [line.split("|")[1] for line in table.splitlines()[2:]]
    return re.findall(r"`([^`]+)`", " ".join(cells))


def tables_of(head: str) -> list[str]:
    """Return every table whose first column has this head."""
    return [found[0] for found in re.finditer(rf"^\| {head} \|.*\n(?:\|.*\n)+", PAGE, re.MULTILINE)]


def list_with(name: str) -> list[list[str]]:
    """Return the names before the colon of each point, of every list that has a point of this name."""
    lists = re.findall(r"(?:^(?:- |  ).*\n)+", PAGE, re.MULTILINE)
    heads = [re.findall(r"^- (`[^:]*`):\s", found, re.MULTILINE) for found in lists]
    named = [[each for head in found for each in re.findall(r"`([^`]+)`", head)] for found in heads]
    return [found for found in named if name in found]


def test_every_example_is_shown_as_it_is_or_linked() -> None:
    shown = [json.loads(block) for block in re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL)]
    linked = re.findall(r"\]\(\.\./src/nearstream/schemas/examples/(\w+)\.json\)", PAGE)
    assert sorted(linked) == sorted({*RELATIONS, "decision", "label_change", "alert", "silence"} - {"near_duplicate"})
    kept = {path.stem: json.loads(path.read_text()) for path in EXAMPLES.glob("*.json") if path.stem not in linked}
    assert sorted(map(json.dumps, shown)) == sorted(map(json.dumps, kept.values()))


def test_the_topics_are_those_of_the_code() -> None:
    (table,) = tables_of("topic")
    types = {kind.__name__: f"`{kind.__struct_config__.tag}`" for kind in get_args(Event)}
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()[2:]]
    assert [row[0] for row in rows] == [f"`{topic.name}`" for topic in ALL]
    for topic, (_, value, key, kept, partitions) in zip(ALL, rows, strict=True):
        assert partitions == str(topic.partitions)
        days = topic.retention_seconds // 86_400 if topic.retention_seconds else None
        assert kept == (f"{days} days" if topic is not SIGNATURES else "compacted, retention and 7 days")
        assert key == topic.key
        for name in topic.values:
            assert types.get(name, name) in value or name == "raw bytes", (topic.name, name)


def test_every_field_of_a_document_is_documented() -> None:
    (table,) = [table for table in tables_of("field") if "`content_type`" in table]
    assert first_cells(table) == list(Document.__struct_fields__)


def test_every_header_of_a_document_is_documented() -> None:
    (table,) = tables_of("record header")
    of_fields = {*_FIELD_HEADERS, *_LIST_HEADERS, f"{_LABEL_HEADER}<name>"}
    others = {"content-type", "content-encoding", "nearstream-degraded", PRIVATE_HEADER, "traceparent"}
    assert sorted(first_cells(table)) == sorted(of_fields | others)


def test_every_field_of_verdicts_and_relation_events_is_documented() -> None:
    for name, message in (("redundant", DocumentVerdict), ("same_lineage", RelationEvent)):
        (fields,) = list_with(name)
        assert sorted(fields) == sorted(["type", *message.__struct_fields__])
    (evidence,) = list_with("distance_ratio")
    assert evidence == list(Evidence.__struct_fields__)


def test_the_headers_are_those_that_are_sent() -> None:
    event = decode_event((EXAMPLES / "near_duplicate.json").read_bytes())
    sent = [name for name, _ in event_headers(event, datetime.now(UTC), b"00-trace")]
    record = ConsumerRecord("documents", 0, 0, 0, None, b"{", [])
    letter = DeadLetter(record, "decode", Reason.NOT_JSON, "")
    dead = [name for name, _ in outgoing(letter, "dead-letters", "worker", "full", 1024 * 1024).headers]
    assert list_with("ce_id") == [sent]
    (shown,) = list_with("nearstream-dead-id")
    assert sorted(shown) == sorted(name for name in dead if not name.startswith("__connect"))


def names_of(code: str, file: str) -> dict[str, Any]:
    """Run code of our own, and return the names that it defines."""
    names: dict[str, Any] = {}
    exec(compile(code, file, "exec"), names)  # noqa: S102 - our own text
    return names


@pytest.mark.parametrize("name", ["verdict", *RELATIONS, "retraction", "alert"])
def test_the_ids_of_all_examples_are_made_as_the_page_says(name: str) -> None:
    event = json.loads((EXAMPLES / f"{name}.json").read_text())
    empty = ("", "", "")
    match name:
        case "verdict":
            states = (*empty, *state(event, event))
        case "retraction":
            key = f"{event['collection']}/{event['document_id']}"
            states = (key, "", "", "", "", f"{event['partition']}/{event['offset']}")
        case "alert":
            since = datetime.fromisoformat(event["since"])
            about = (f"{event['collection']}/{event['name']}", event["subject"], "")
            states = (*about, "", event["state"], str(int(since.timestamp() * 1000)))
        case _:
            states = (*state(event, event["older"]), *state(event, event["newer"]))
    (block,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    identify = names_of(block, "events.md")["identify"]
    assert identify(name, *states, event["scheme"]) == event["event_id"]
    if name == "verdict":
        founder = state(event, event["family"]["founder"])
        assert identify("family", *founder[:2], *empty, "", event["scheme"]) == event["family"]["id"]


def state(event: dict[str, Any], document: dict[str, Any]) -> tuple[str, str, str]:
    position = f"{document['partition']}/{document['offset']}"
    return f"{event['collection']}/{document['id']}", document["version"], position


@pytest.mark.parametrize(
    ("received", "kept"),
    [
        (["near_duplicate", "exact_duplicate", "near_duplicate"], ["exact_duplicate", "near_duplicate"]),
        (["version", "near_duplicate", "retraction", "verdict"], ["verdict", "version"]),
        (["version", "retraction", "near_duplicate", "verdict"], ["verdict", "version"]),
        (["verdict", "later retraction"], []),
        (["later retraction", "verdict"], []),
    ],
)
def test_the_consumer_keeps_each_event_once_and_none_that_was_retracted(received: list[str], kept: list[str]) -> None:
    consumer = names_of((ROOT / "examples/valid_events.py").read_text(), "valid_events.py")
    given = {path.stem: json.loads(path.read_text()) for path in EXAMPLES.glob("*.json")}
    verdict = given["verdict"]
    later = {"document_id": verdict["id"], "partition": verdict["partition"], "offset": verdict["offset"] + 1}
    given["later retraction"] = given["retraction"] | later
    for name in received:
        consumer["receive"](json.dumps(given[name]).encode())
    assert sorted(event["type"] for event in consumer["events"].values()) == kept
