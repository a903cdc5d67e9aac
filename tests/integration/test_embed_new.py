"""The example before a vector store embeds each new document once, by the verdicts of workers."""

from pathlib import Path
from runpy import run_path

from tests.support.deployment import TEXTS, deployed

EXAMPLE = Path(__file__).parents[2] / "examples" / "embed_new.py"


async def test_only_new_documents_are_embedded(kafka: str, redis_url: str, tmp_path: Path) -> None:
    embedded = dict[str, str]()
    texts = {
        "a": TEXTS[0],
        "copy": TEXTS[0].upper(),
        "b": TEXTS[5],
        "more": TEXTS[0] + TEXTS[6],
        "near": TEXTS[5] + " ok",
    }
    async with deployed(kafka, redis_url, tmp_path) as deployment:
        with deployment.worker():
            for name, text in texts.items():
                await deployment.send([deployment.document(name, text)])
                await deployment.drained()
        prefix = deployment.settings.topic_prefix
        await run_path(str(EXAMPLE))["run"](kafka, embedded.__setitem__, prefix, until_end=True)
    assert embedded == {name: texts[name] for name in ("a", "b", "more")}
