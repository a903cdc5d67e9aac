"""The new parts of a document, as `nearstream check --novel` prints them."""

from nearstream.schemas.documents.document import Document
from nearstream.streams.matching.checking import answer, found_in_text
from nearstream.streams.matching.looking_up import find, newcomer
from nearstream.workers.cli.check import NewParts, new_parts, part_lines
from nearstream.workers.config.settings import load
from nearstream.workers.operations.signatures import Signed
from nearstream.workers.pipeline.deployment import Deployment
from nearstream.workers.pipeline.in_process import embedded
from tests.support.made_up import NOON, words
from tests.support.matched import look_up

DEPLOYMENT = Deployment.of(load({}))
STORY, NEWS = words(1, 400), words(2, 60)


async def told_of(text: str) -> NewParts:
    """Return what is new in a draft beside the one story that is known."""
    job = embedded(DEPLOYMENT)
    await job.matcher.match(job.signer.sign(Document(id="story", text=" ".join(STORY), observed_at=NOON)))
    signature = job.signer.sign(Document(id="draft", text=text, observed_at=NOON))
    question = newcomer(signature, DEPLOYMENT.scheme, DEPLOYMENT.key, DEPLOYMENT.thresholds)
    found = found_in_text(find(question, await look_up(job.store, question)), text, DEPLOYMENT.scheme.text)
    return new_parts(Signed("draft.txt", signature, text=text), answer(found, 20), found.novelty)


def written(text: list[str]) -> str:
    """Return words as a person writes them, with signs that their normal form has not."""
    return "“" + ",\n  ".join(" ".join(text[at : at + 9]).title() for at in range(0, len(text), 9)) + "!”"


async def test_the_new_part_is_quoted_as_it_was_sent() -> None:
    text = f"{written(STORY[:200])} -- {written(NEWS)} -- {written(STORY[200:])}"
    told = await told_of(text)
    (part,) = told.parts[:1]
    assert text[part["start"] : part["end"]] == part["text"]
    true = text.index(written(NEWS))
    assert abs(part["start"] - true) <= 40
    assert abs(part["end"] - true - len(written(NEWS))) <= 40
    assert [source.id for source in told.sources] == ["story"]
    assert told.novel is not None
    lines = list(part_lines(told))
    assert lines[0] == f"draft: +{told.novel.value} new, the rest is in story"
    assert lines[1].startswith(f"  {part['start']}-{part['end']}  ")
    assert len(lines) == 1 + len(told.parts)


async def test_nothing_is_new_in_a_copy_and_all_in_another_text() -> None:
    for text, is_equal in ((written(STORY), False), ("\n".join(STORY), True)):
        copy = await told_of(text)
        assert (copy.parts, copy.redundant) == ((), is_equal)
    other = await told_of(written(words(3, 200)))
    assert [(part["start"], part["end"]) for part in other.parts] == [(0, len(written(words(3, 200))))]
