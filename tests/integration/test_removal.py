"""A removal removes the document under its record key, but no later state of it."""

import json
from pathlib import Path

from nearstream.schemas.events import RelationEvent, Retraction, is_void
from nearstream.schemas.record import ConsumerRecord, ProducerRecord
from nearstream.schemas.topics import DOCUMENTS
from tests.support.deployment import TEXTS, Deployment, deployed


def _page(number: int, **fields: str) -> dict[str, str]:
    return {"url": f"https://a.example/{number}?utm_source=x&b=1&a=2", "text": TEXTS[number], **fields}


def _statuses(deployment: Deployment, names: list[str]) -> list[str]:
    return [json.loads(deployment.run("inspect", name, "--json").stdout)["status"] for name in names]


async def _send(deployment: Deployment, *sent: tuple[str, str | None]) -> None:
    """Send texts and removals of documents, one after the other."""
    topic = deployment.topic(DOCUMENTS)
    for name, text in sent:
        value = None if text is None else json.dumps({"id": name, "text": text}).encode()
        await deployment.send([ProducerRecord(topic, name.encode(), value, [])])
        await deployment.drained()


async def _told(deployment: Deployment) -> tuple[dict[str, RelationEvent], list[Retraction]]:
    """Return relation events by their ids, and retractions."""
    events = await deployment.events()
    relations = {event.event_id: event for event in events if not isinstance(event, Retraction)}
    return relations, [event for event in events if isinstance(event, Retraction)]


async def test_a_null_value_under_the_key_of_a_produced_document_removes_it(
    kafka: str, redis_url: str, tmp_path: Path
) -> None:
    lines = [_page(number, id=f"p-{number}") if number % 2 else _page(number) for number in range(20)]
    file = tmp_path / "pages.jsonl"
    file.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    async with deployed(kafka, redis_url, tmp_path) as deployment:
        assert deployment.run("produce", str(file), "--quiet").returncode == 0
        sent: list[ConsumerRecord] = await deployment.read(DOCUMENTS.name)
        keys = sorted(record.key.decode() for record in sent if record.key)
        named = [line.get("id", f"https://a.example/{number}?a=2&b=1") for number, line in enumerate(lines)]
        assert keys == sorted(named)
        with deployment.worker():
            await deployment.drained()
            assert _statuses(deployment, keys[:1] + keys[-1:]) == ["live", "live"]
            await deployment.send([ProducerRecord(sent[0].topic, record.key, None, []) for record in sent])
            await deployment.drained()
            stats = json.loads(deployment.run("stats", "--json").stdout)
        assert stats["documents"] == 0
        _, retractions = await _told(deployment)
        assert {retraction.document_id for retraction in retractions} == set(keys)


async def test_remove_says_what_was_live_and_the_log_names_the_first_unknown_removal(
    kafka: str, redis_url: str, tmp_path: Path
) -> None:
    async with deployed(kafka, redis_url, tmp_path) as deployment:
        assert deployment.run("remove", "a").returncode == 78
        with deployment.worker():
            await _send(deployment, ("a", TEXTS[0]), ("b", TEXTS[1]))
            done = deployment.run("remove", "a", "no\x85such".replace("\x85", "\u2028"))
            assert done.returncode == 1
            assert done.stdout.decode().splitlines() == [
                "default/a: live, removal sent",
                "default/no\\u2028such: not in the index, removal sent",
            ]
            await deployment.drained()
            assert _statuses(deployment, ["a", "b"]) == ["removed", "live"]
            done = deployment.run("remove", "b", "--collection", "other", "--json")
            assert (done.returncode, json.loads(done.stdout)) == (1, {"document": "other/b", "status": "unknown"})
            await deployment.drained()
            assert _statuses(deployment, ["b"]) == ["live"]
            assert deployment.run("remove", "b").returncode == 0
            await deployment.drained()
            assert _statuses(deployment, ["b"]) == ["removed"]
        assert sum(log.count("matched no document") for log in deployment.log_texts()) == 1


async def test_a_document_that_comes_back_keeps_its_new_relations(kafka: str, redis_url: str, tmp_path: Path) -> None:
    one, two = TEXTS[0], TEXTS[0] + " One more sentence that was not there before, about the river and the bridge."
    async with deployed(kafka, redis_url, tmp_path) as deployment:
        with deployment.worker():
            await _send(deployment, ("twin", one), ("a", one), ("a", two), ("a", one), ("a", two))
            relations, _ = await _told(deployment)
            about_a = [event for event in relations.values() if "a" in (event.newer.id, event.older.id)]
            states = {(event.newer.id, event.newer.offset) for event in about_a}
            assert len({offset for name, offset in states if name == "a"}) == 4
            await _send(deployment, ("a", None), ("a", one), ("b", one))
        relations, retractions = await _told(deployment)
        assert len({retraction.event_id for retraction in retractions}) == 1
        removal = retractions[0]
        assert removal.offset is not None
        for event in relations.values():
            named = [ref for ref in (event.newer, event.older) if ref.id == "a"]
            earlier = any((ref.offset or 0) < int(str(removal.offset)) for ref in named)
            assert is_void(event, removal) == earlier
        live = {(event.newer.id, event.older.id) for event in relations.values() if not is_void(event, removal)}
        assert {("a", "twin"), ("b", "twin")} <= live
