"""Web pages on `documents` are read by workers, also those that were made to hang a parser."""

from pathlib import Path

from nearstream.schemas.documents.record import Headers, ProducerRecord
from nearstream.schemas.topics.table import DOCUMENTS
from tests.support.deployment import TEXTS, LocalDeployment, deployed, until

FRAME = "<nav>" + "".join(f"<a href='/{number}'>Topic {number} of our site</a>" for number in range(300)) + "</nav>"
HANGS = "<a " + " ".join(f"a{number}=1" for number in range(60_000)) + ">link</a><p>"
AS_HTML: Headers = [("content-type", b"text/html; charset=utf-8")]


def page(deployment: LocalDeployment, name: str, html: str) -> ProducerRecord:
    headers: Headers = [*AS_HTML, ("nearstream-id", name.encode())]
    return ProducerRecord(deployment.topic(DOCUMENTS), b"one partition", html.encode(), headers)


async def test_f17_pages_that_hang_a_parser_stop_no_worker(kafka: str, redis_url: str, tmp_path: Path) -> None:
    async with deployed(kafka, redis_url, tmp_path) as deployment:
        hanging = [page(deployment, f"bomb-{number}", HANGS + TEXTS[number]) for number in range(2)]
        framed = [page(deployment, f"page-{number}", f"{FRAME}<main><p>{TEXTS[number]}</main>") for number in range(2)]
        await deployment.send([each for pair in zip(hanging, framed, strict=True) for each in pair])
        with deployment.worker():
            # The second worker joins while the first one waits for its pages.
            with deployment.worker():
                await until(lambda: deployment.logged("assigned"))
            await deployment.drained()
        verdicts = {said.id: said for said in await deployment.verdicts()}
        assert set(verdicts) == {f"{kind}-{number}" for kind in ("bomb", "page") for number in range(2)}
        for number in range(2):
            hung, read = verdicts[f"bomb-{number}"], verdicts[f"page-{number}"]
            assert hung.degraded == ("extraction_fallback",)
            assert hung.family.id == read.family.id  # so the frame of the page was left out
        assert await deployment.letters() == []
