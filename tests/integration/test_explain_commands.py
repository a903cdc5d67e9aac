"""What became of a pair of documents, as `show` says of a real index."""

from pathlib import Path

from nearstream.schemas.documents.record import ProducerRecord
from nearstream.schemas.verdicts.events import RELATIONS, Retraction
from nearstream.workers.operations.explaining import Outcome, explain, outcome
from nearstream.workers.pipeline.deployment import Deployment
from nearstream.workers.redis.index.index import RedisIndex
from nearstream.workers.redis.reading.inspect import inspect_document
from tests.support.deployment import LocalDeployment, deployed
from tests.support.made_up import words

FEW = 14  # pages with one frame: more than a rare key has
ALL = " ".join(RELATIONS)


def pages(count: int) -> list[tuple[str, str]]:
    """Return pages whose frame is half of their text."""
    frame = words(count, 50)
    return [(f"{count}-{at}", " ".join((*words(1000 * count + at, 50), *frame))) for at in range(count)]


def family() -> list[tuple[str, str]]:
    """Return a text, a copy of it, another version, and a copy of that version."""
    text = words(2, 300)
    version = [*words(3, 60), *text[:90], *words(4, 60), *text[150:240], *words(5, 60), *text[240:]]
    return [
        ("text", " ".join(text)),
        ("copy", " ".join((*text, "again"))),
        ("version", " ".join(version)),
        ("version-copy", " ".join((*version, "again"))),
    ]


async def lost(deployment: LocalDeployment, later: str, earlier: str, **changed: str) -> Outcome:
    with_settings = Deployment.of(deployment.changed(**changed).settings)
    explained = await explain(with_settings, (later, earlier), "default", 10.0, quiet=True)
    return outcome(with_settings, explained)


async def in_order(deployment: LocalDeployment, count: int) -> list[str]:
    """Return the ids of these pages in the order in which the index got them."""
    index = await RedisIndex.open_to_read(Deployment.of(deployment.settings).index_address())
    places = {}
    for name, _ in pages(count):
        state, *_ = await inspect_document(index, f"default/{name}")
        places[name] = state.registered_at_ms, state.number
    await index.close()
    return sorted(places, key=places.__getitem__)


async def test_the_outcome_names_the_tier_that_lost_the_pair(kafka: str, redis_url: str, tmp_path: Path) -> None:
    async with deployed(kafka, redis_url, tmp_path) as deployment:
        with deployment.worker():
            for name, text in family():
                await deployment.send([deployment.document(name, text)])
                await deployment.drained()
            await deployment.send([deployment.document(name, text) for name, text in pages(FEW)])
            await deployment.send([deployment.document("gone", " ".join(words(6, 100)))])
            await deployment.drained()
            topic = deployment.document("gone", "").topic
            await deployment.send([ProducerRecord(topic, b"gone", None, [])])
            await deployment.drained()
        sent = {
            (event.newer.id, event.older.id): event.event_id
            for event in await deployment.events()
            if not isinstance(event, Retraction)
        }

        related = await lost(deployment, "text", "version")
        assert (related.tier, related.is_sent) == ("related", True)
        assert related.event_id == sent["version", "text"]
        for told, tier in (
            (await lost(deployment, "nobody", "text"), "not_live"),
            (await lost(deployment, "gone", "text"), "not_live"),
            (await lost(deployment, f"{FEW}-1", "text"), "no_shared_key"),
            (await lost(deployment, "version", "copy"), "represented"),
            (await lost(deployment, "version-copy", "text"), "family_was_told"),
        ):
            assert told.tier == tier, told
            assert told.is_sent is (False if tier == "family_was_told" else None)
        assert ("version-copy", "text") not in sent

        few = await in_order(deployment, FEW)
        told_of_few = {(await lost(deployment, few[-1], each, relations=ALL)).tier for each in few[:-1]}
        assert {"common_text", "candidate_cap"} <= told_of_few
