"""A removal removes the document under its record key, but no later state of it."""

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from nearstream.schemas.documents.record import ConsumerRecord, ProducerRecord
from nearstream.schemas.topics.table import DOCUMENTS
from nearstream.schemas.verdicts.events import RelationEvent, Retraction
from tests.support.deployment import TEXTS, LocalDeployment, deployed


def _page(number: int, **fields: str) -> dict[str, str]:
    return {"url": f"https://a.example/{number}?utm_source=x&b=1&a=2", "text": TEXTS[number], **fields}


def _statuses(deployment: LocalDeployment, names: list[str]) -> list[str]:
    return [json.loads(deployment.run("show", name, "--json").stdout)["status"] for name in names]


async def _send(deployment: LocalDeployment, *sent: tuple[str, str | None]) -> None:
    """Send texts and removals of documents, one after the other."""
    topic = deployment.topic(DOCUMENTS)
    for name, text in sent:
        value = None if text is None else json.dumps({"id": name, "text": text}).encode()
        await deployment.send([ProducerRecord(topic, name.encode(), value, [])])
        await deployment.drained()


async def _told(deployment: LocalDeployment) -> tuple[dict[str, RelationEvent], list[Retraction]]:
    """Return relation events by their ids, and retractions."""
    events = await deployment.events()
    relations = {event.event_id: event for event in events if not isinstance(event, Retraction)}
    return relations, [event for event in events if isinstance(event, Retraction)]


@pytest.fixture(scope="module")
async def working(
    kafka: str, redis_url: str, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[LocalDeployment]:
    """Yield a deployment whose worker runs."""
    async with deployed(kafka, redis_url, tmp_path_factory.mktemp("removal")) as deployment:
        with deployment.worker():
            yield deployment


async def test_a_null_value_under_the_key_of_a_produced_document_removes_it(
    working: LocalDeployment, tmp_path: Path
) -> None:
    lines = [_page(number, id=f"p-{number}") if number % 2 else _page(number) for number in range(4)]
    file = tmp_path / "pages.jsonl"
    file.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    assert working.run("produce", str(file), "--quiet").returncode == 0
    sent: list[ConsumerRecord] = await working.read(DOCUMENTS.name)
    keys = [record.key.decode() for record in sent if record.key]
    named = [line.get("id", f"https://a.example/{number}?a=2&b=1") for number, line in enumerate(lines)]
    assert sorted(keys) == sorted(named)
    await working.drained()
    assert set(_statuses(working, keys)) == {"live"}
    await working.send([ProducerRecord(sent[0].topic, record.key, None, []) for record in sent])
    await working.drained()
    assert set(_statuses(working, keys)) == {"removed"}
    _, retractions = await _told(working)
    assert {retraction.document_id for retraction in retractions} >= set(keys)


async def test_remove_says_what_was_live_and_the_log_names_the_first_unknown_removal(working: LocalDeployment) -> None:
    assert working.changed(namespace="other").run("remove", "a").returncode == 78
    await _send(working, ("a", TEXTS[0]), ("b", TEXTS[1]))
    done = working.run("remove", "a", "no\u2028such")
    assert done.returncode == 1
    assert done.stdout.decode().splitlines() == [
        "default/a: live, removal sent",
        "default/no\\u2028such: not in the index, removal sent",
    ]
    await working.drained()
    assert _statuses(working, ["a", "b"]) == ["removed", "live"]
    done = working.run("remove", "b", "--collection", "other", "--json")
    assert (done.returncode, json.loads(done.stdout)) == (1, {"document_key": "other/b", "status": "unknown"})
    await working.drained()
    assert _statuses(working, ["b"]) == ["live"]
    assert working.run("remove", "b").returncode == 0
    await working.drained()
    assert _statuses(working, ["b"]) == ["removed"]
    assert sum(log.count("matched no document") for log in working.log_texts()) == 1


async def test_a_document_that_comes_back_keeps_its_new_relations(working: LocalDeployment) -> None:
    one, two = TEXTS[0], TEXTS[0] + " One more sentence that was not there before, about the river and the bridge."
    await _send(working, ("twin", one), ("c", one), ("c", two), ("c", one), ("c", two))
    relations, _ = await _told(working)
    about_c = [event for event in relations.values() if "c" in (event.newer.id, event.older.id)]
    assert len({event.newer.offset for event in about_c if event.newer.id == "c"}) == 4
    await _send(working, ("c", None), ("c", one), ("d", one))
    relations, retractions = await _told(working)
    (removal,) = {each.event_id: each for each in retractions if each.document_id == "c"}.values()
    assert removal.offset is not None
    live = set()
    for event in relations.values():
        named = [ref for ref in (event.newer, event.older) if ref.id == "c"]
        if all((ref.offset or 0) > int(str(removal.offset)) for ref in named):
            live.add((event.newer.id, event.older.id))
    assert {("c", "twin"), ("d", "twin")} <= live
