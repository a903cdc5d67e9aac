"""`audit recall` on the topics of a real deployment."""

import json
from pathlib import Path
from random import Random

from nearstream.schemas.record import ProducerRecord
from nearstream.schemas.topics import DOCUMENTS
from tests.support.deployment import LINES, LocalDeployment, deployed

CLUSTERS = 30


def texts() -> list[tuple[str, str]]:
    """Return texts of 200 words in groups of three, which differ in a few words."""
    random = Random(11)
    vocabulary = ["".join(random.choices("etaoinshrdlu", k=random.randint(3, 9))) for _ in range(3_000)]
    found = []
    for cluster in range(CLUSTERS):
        words = random.choices(vocabulary, k=200)
        for copy in range(3):
            changed = [*words]
            for place in random.sample(range(200), 2 * copy):
                changed[place] = random.choice(vocabulary)
            found.append((f"{cluster}-{copy}", " ".join(changed)))
    return found


def audited(deployment: LocalDeployment, *options: str) -> dict[str, object]:
    done = deployment.run("audit", "recall", "--json", "--quiet", "--since", "1h", *options)
    assert done.returncode == 0, done.stderr.decode()
    answer: dict[str, object] = json.loads(done.stdout)
    return answer


async def test_the_recall_of_a_window_is_measured(kafka: str, redis_url: str, tmp_path: Path) -> None:
    async with deployed(kafka, redis_url, tmp_path) as deployment:
        topic = deployment.topic(DOCUMENTS)
        with deployment.worker():
            await deployment.send([deployment.document(name, text) for name, text in texts()])
            await deployment.send(deployment.examples(LINES))
            await deployment.drained()
            await deployment.send([ProducerRecord(topic, b"0-0", None, [])])
            await deployment.drained()
        told = audited(deployment)
        documents = told["documents"]
        assert isinstance(documents, int)
        assert documents > 3 * CLUSTERS
        assert told["waiting"] == 0
        pairs, found, missed = told["pairs"], told["found"], told["missed"]
        assert isinstance(pairs, int)
        assert isinstance(found, int)
        assert isinstance(missed, list)
        assert pairs >= 2 * CLUSTERS
        assert found >= 0.95 * pairs
        assert len(missed) == pairs - found

        # A copy that no worker has matched is no miss.
        await deployment.send([deployment.document("late", texts()[4][1]), deployment.document("few", "two words")])
        metrics = tmp_path / "audit.prom"
        later = audited(deployment, "--metrics", str(metrics), "--resemblance", "0.9")
        assert (later["waiting"], later["documents"]) == (2, documents)
        assert f"nearstream_audit_recall_ratio {later['recall']}" in metrics.read_text()
        assert f"nearstream_audit_pairs {later['pairs']}.0" in metrics.read_text()
        assert f"nearstream_audit_documents {documents}.0" in metrics.read_text()

        plain = deployment.run("audit", "recall", "--since", "1h")
        assert plain.returncode == 0
        assert f"pairs         {pairs} of resemblance 0.8 or more" in plain.stdout.decode()
