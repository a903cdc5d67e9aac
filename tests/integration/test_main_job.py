"""The main job on real services agrees with a single process.

That process reads one document at a time.
"""

import json
import random
from pathlib import Path

from nearstream.schemas.topics.table import SIGNATURES
from tests.fault.agreement import disagreement
from tests.support.deployment import LINES, TEXTS, deployed, ids


async def test_workers_of_all_roles_in_one_group_say_what_a_single_process_says(
    kafka: str, redis_url: str, tmp_path: Path
) -> None:
    async with deployed(kafka, redis_url, tmp_path) as deployment:
        with deployment.worker(), deployment.worker("sign"), deployment.worker("match"):
            await deployment.send(deployment.examples(LINES))
            await deployment.drained()
        verdicts, events = await deployment.verdicts(), await deployment.events()
        assert len(verdicts) == len(ids(verdicts)) == len(LINES)
        assert sum(verdict.events for verdict in verdicts) == len(events) > 100
        assert await disagreement(deployment) == {}
        assert await deployment.letters() == []


async def test_many_large_documents_are_delivered_at_once_without_verdicts_where_none_are_asked_for(
    kafka: str, redis_url: str, tmp_path: Path
) -> None:
    """Their signatures fill batches, which must not exceed the broker's limit of the topic."""
    draw = random.Random(7)
    words = [f"{draw.getrandbits(40):x}" for _ in range(5000)]
    texts = [*(" ".join(draw.choices(words, k=6000)) for _ in range(120)), TEXTS[0], TEXTS[0]]
    lines = [json.dumps({"id": f"{number}", "text": text}).encode() for number, text in enumerate(texts)]
    async with deployed(kafka, redis_url, tmp_path, verdicts="none") as deployment:
        await deployment.send(deployment.examples(lines))
        with deployment.worker() as worker:
            await deployment.drained()
            assert worker.poll() is None
        assert len(await deployment.read(SIGNATURES.name)) == len(lines)
        assert await deployment.verdicts() == []
        assert len(await deployment.events()) == 1
