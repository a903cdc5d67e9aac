"""A removal removes the document under its record key, but no later state of it."""

import json
from pathlib import Path

import pytest
from aiokafka.admin import NewTopic

from nearstream.schemas.documents.record import ConsumerRecord, ProducerRecord
from nearstream.schemas.topics.table import DOCUMENTS
from nearstream.schemas.verdicts.events import RelationEvent, Retraction, is_void
from nearstream.workers.kafka.client import admin
from tests.support.deployment import DOCUMENT_PARTITIONS, TEXTS, Deployment, deployed, until


def _page(number: int, **fields: str) -> dict[str, str]:
    return {"url": f"https://a.example/{number}?utm_source=x&b=1&a=2", "text": TEXTS[number], **fields}


def _statuses(deployment: Deployment, names: list[str]) -> list[str]:
    return [json.loads(deployment.run("show", name, "--json").stdout)["status"] for name in names]


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
            assert (done.returncode, json.loads(done.stdout)) == (1, {"document_key": "other/b", "status": "unknown"})
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


@pytest.mark.parametrize(
    ("observed_at", "partitions"), [(None, DOCUMENT_PARTITIONS), ("2026-03-02T08:15:00Z", DOCUMENT_PARTITIONS + 1)]
)
async def test_documents_and_removals_of_a_topic_that_was_made_anew_count(
    kafka: str, redis_url: str, tmp_path: Path, observed_at: str | None, partitions: int
) -> None:
    fields = {"observed_at": observed_at} if observed_at else {}
    names = [f"d{number}" for number in range(3)]
    async with deployed(kafka, redis_url, tmp_path) as deployment:
        topic = deployment.topic(DOCUMENTS)

        def documents(some: list[str]) -> list[ProducerRecord]:
            lines = [json.dumps({"id": name, "text": TEXTS[names.index(name)], **fields}).encode() for name in some]
            return deployment.examples(lines)

        def removals(some: list[str]) -> list[ProducerRecord]:
            return [ProducerRecord(topic, name.encode(), None, []) for name in some]

        with deployment.worker():
            # Other documents first, so that the offsets are higher than all that come later.
            await deployment.send([*deployment.examples(_fillers()), *documents(names), *removals(names)])
            await deployment.drained()
            assert set(_statuses(deployment, names)) == {"removed"}
        first = {verdict.event_id: verdict for verdict in await deployment.verdicts()}
        await _make_anew(deployment, topic, partitions)
        with deployment.worker():
            await deployment.send(documents(names))
            await deployment.drained()
            assert set(_statuses(deployment, names)) == {"live"}
            _, removed = await _told(deployment)
            again = [each for each in await deployment.verdicts() if each.id in names and each.event_id not in first]
            assert {verdict.id for verdict in again} == set(names)
            assert not any(is_void(verdict, removal) for verdict in again for removal in removed)
            assert all(
                any(is_void(each, removal) for removal in removed) for each in first.values() if each.id in names
            )
            await deployment.send(removals(names))
            await deployment.drained()
            assert set(_statuses(deployment, names)) == {"removed"}
            _, removed = await _told(deployment)
            assert all(any(is_void(verdict, removal) for removal in removed) for verdict in again)
        assert await deployment.letters() == []


def _fillers() -> list[bytes]:
    return [json.dumps({"id": f"filler-{number}", "text": f"filler {number}"}).encode() for number in range(200)]


async def _make_anew(deployment: Deployment, topic: str, partitions: int) -> None:
    """Delete a topic and create it again."""
    async with admin(deployment.settings, 10.0) as client:
        await client.delete_topics([topic])

        async def is_gone() -> bool:
            return topic not in await client.list_topics()

        await until(is_gone)
        made = NewTopic(topic, partitions, 1, topic_configs=DOCUMENTS.config(0))

        async def is_made() -> bool:
            await client.create_topics([made])
            return topic in await client.list_topics()

        await until(is_made)
