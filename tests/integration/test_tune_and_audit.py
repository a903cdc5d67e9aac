"""The promise of `tune` holds in a deployment: its bands find what `audit recall` knows by an exact join."""

import json
from pathlib import Path
from random import Random

from benchmarks.texts import originals
from tests.support.deployment import deployed

WORDS = 150
PAIRS = 400
RESEMBLANCE, RECALL = 0.8, 0.99


def documents() -> list[bytes]:
    """Return excerpts of real texts with copies of them, in lines of JSON.

    In a copy one to three words in the middle are replaced by words of other texts, so most pairs barely have the
    resemblance.
    """
    random, texts = Random(7), [text.split() for text in originals()]
    excerpts = [text[at : at + WORDS] for text in texts for at in range(0, len(text) - WORDS, WORDS)]
    lines = []
    for number, excerpt in enumerate(random.sample(excerpts, PAIRS)):
        copy = [*excerpt]
        for place in random.sample(range(10, WORDS - 10, 10), random.choice((1, 2, 3, 3, 3))):
            copy[place] = random.choice(random.choice(texts))
        for name, words in (("text", excerpt), ("copy", copy)):
            lines.append(json.dumps({"id": f"{number}-{name}", "text": " ".join(words)}).encode())
    return lines


async def test_tuned_bands_keep_their_promise_within_a_point(kafka: str, redis_url: str, tmp_path: Path) -> None:
    lines, sample = documents(), tmp_path / "sample.jsonl"
    sample.write_bytes(b"\n".join(lines))
    # Anchors would find all of these pairs, whatever the bands are.
    async with deployed(kafka, redis_url, tmp_path, scheme="bands-only") as tuning:
        asked = ("--resemblance", str(RESEMBLANCE), "--recall", str(RECALL))
        done = tuning.run("tune", *asked, "--sample", str(sample), "--json", "--quiet")
        assert done.returncode == 0, done.stderr.decode()
        tuned = json.loads(done.stdout)
        assert tuned["chance"] >= RECALL
        settings = {name.removeprefix("NEARSTREAM_").lower(): str(text) for name, text in tuned["settings"].items()}
    async with deployed(kafka, redis_url, tmp_path, scheme="bands-only", **settings) as deployment:
        with deployment.worker():
            await deployment.send(deployment.examples(lines))
            await deployment.drained()
        done = deployment.run(
            "audit", "recall", "--resemblance", str(RESEMBLANCE), "--since", "1h", "--json", "--quiet"
        )
        assert done.returncode == 0, done.stderr.decode()
        audited = json.loads(done.stdout)
    assert audited["documents"] == 2 * PAIRS
    assert audited["pairs"] > PAIRS // 2
    # The texts, the edits and the key are fixed, so that this is no matter of chance.
    assert audited["recall"] >= RECALL - 0.01, audited["missed"]
