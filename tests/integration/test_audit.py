"""`audit recall` on the topics of a real deployment."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

from nearstream.schemas.documents.record import ProducerRecord
from nearstream.schemas.topics.table import DOCUMENTS
from tests.support.deployment import LocalDeployment, deployed

CLUSTERS = 30


def observed() -> list[dict[str, str]]:
    """Return documents of 200 words in groups of three: two equal ones and one in which a few words differ.

    Those of a group are on one host, within two hours.
    """
    random, now = Random(11), datetime.now(UTC)
    vocabulary = ["".join(random.choices("etaoinshrdlu", k=random.randint(3, 9))) for _ in range(3_000)]
    documents = []
    for cluster in range(CLUSTERS):
        words = random.choices(vocabulary, k=200)
        began = now - timedelta(hours=random.randint(3, 400))
        for copy in range(3):
            changed = [*words]
            for place in random.sample(range(200), 4 if copy == 2 else 0):
                changed[place] = random.choice(vocabulary)
            at = (began + timedelta(hours=copy)).isoformat()
            document = {"id": f"{cluster}-{copy}", "text": " ".join(changed), "observed_at": at}
            documents.append({**document, "url": f"https://h{cluster}.example/{copy}"})
    return documents


def audited(deployment: LocalDeployment, *options: str) -> dict[str, Any]:
    done = deployment.run("audit", "recall", "--json", "--quiet", "--since", "1h", *options)
    assert done.returncode == 0, done.stderr.decode()
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


async def test_the_recall_of_a_window_is_measured(kafka: str, redis_url: str, tmp_path: Path) -> None:
    async with deployed(kafka, redis_url, tmp_path) as deployment:
        with deployment.worker():
            documents = observed()
            lines = [json.dumps(document).encode() for document in documents]
            # Documents that race may have an event with each of two copies, so the last of each group comes later.
            for some in ([line for at, line in enumerate(lines) if at % 3 < 2], lines[2::3]):
                await deployment.send(deployment.examples(some))
                await deployment.drained()
            await deployment.send([ProducerRecord(deployment.topic(DOCUMENTS), b"0-0", None, [])])
            await deployment.drained()
        told = audited(deployment)
        pairs, found, missed, count = told["pairs"], told["found"], told["missed"], told["documents"]
        assert (count, told["waiting"], len(missed)) == (3 * CLUSTERS - 1, 0, pairs - found)
        assert pairs >= 2 * CLUSTERS
        assert found >= 0.95 * pairs

        # A copy that no worker has matched is no miss.
        late = (("late", documents[4]["text"]), ("few", "two words"))
        await deployment.send([deployment.document(*each) for each in late])
        metrics = tmp_path / "audit.prom"
        later = audited(deployment, "--metrics", str(metrics), "--resemblance", "0.9")
        assert (later["waiting"], later["documents"]) == (2, count)
        for name, value in (("recall_ratio", later["recall"]), ("pairs", later["pairs"]), ("documents", count)):
            assert f"nearstream_audit_{name} {float(value)}" in metrics.read_text()
        plain = deployment.run("audit", "recall", "--since", "1h").stdout.decode()
        assert f"\npairs            {pairs}\n" in plain
