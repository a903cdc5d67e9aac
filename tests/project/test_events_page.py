"""docs/events.md shows the messages, topics and ids of the code."""

import json
import re
from datetime import datetime
from pathlib import Path
from typing import Any, get_args

import pytest

from nearstream.schemas.topics.table import ALL, SIGNATURES
from nearstream.schemas.verdicts.events import RELATIONS, Event

ROOT = Path(__file__).parent.parent.parent
EXAMPLES = ROOT / "schemas/examples"
PAGE = (ROOT / "docs/events.md").read_text()


def test_every_example_is_shown_as_it_is_or_linked() -> None:
    shown = [json.loads(block) for block in re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL)]
    linked = re.findall(r"\]\(\.\./src/nearstream/schemas/examples/(\w+)\.json\)", PAGE)
    assert sorted(linked) == sorted({*RELATIONS, "decision", "label_change", "alert", "silence"} - {"near_duplicate"})
    kept = {path.stem: json.loads(path.read_text()) for path in EXAMPLES.glob("*.json") if path.stem not in linked}
    assert sorted(map(json.dumps, shown)) == sorted(map(json.dumps, kept.values()))


def test_the_topics_are_those_of_the_code() -> None:
    (table,) = re.findall(r"^\| topic \|.*\n(?:\|.*\n)+", PAGE, re.MULTILINE)
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


@pytest.mark.parametrize(
    ("document", "is_before"),
    [
        ({"offset": 9, "observed_at": "2030-01-01T00:00:00Z"}, True),  # positions decide, whatever the dates are
        ({"offset": 10}, False),
        ({"offset": 3, "sent_at": "2026-03-02T12:00:01Z"}, True),
        ({"offset": 3, "sent_at": "2026-03-02T12:00:01.001Z"}, False),  # of a topic that was made anew
        ({"offset": 99, "partition": 4}, True),  # without a common partition times decide
        ({"offset": 3, "partition": 4, "sent_at": "2026-03-02T12:00:00.001Z"}, False),
        ({"offset": 3, "topic": "other", "observed_at": "2026-03-02T12:00:01Z"}, False),
        ({"observed_at": "2026-03-02T12:00:00Z"}, True),
    ],
)
def test_a_removal_voids_what_was_sent_before_it(document: dict[str, Any], is_before: bool) -> None:
    consumer = names_of((ROOT / "examples/valid_events.py").read_text(), "valid_events.py")
    place = {"topic": "t", "partition": 3}
    removal = {**place, "offset": 10, "removed_at": "2026-03-02T12:00:00Z"}
    assert consumer["is_before"]({**place, "observed_at": "2026-03-02T12:00:00Z", **document}, removal) is is_before
