"""The benchmark of the HTTP API fills an index that answers as one that workers have filled."""

import asyncio
import secrets

from benchmarks.check.__main__ import questions
from benchmarks.check.filling import fill
from benchmarks.check.texts import text
from nearstream.schemas.documents.document import Document, from_milliseconds
from tests.support.api import START_MS, served

DOCUMENTS = 200


def test_a_text_depends_on_its_number_alone() -> None:
    texts = [text(number) for number in range(300)]
    assert texts == [text(number) for number in range(300)]
    assert len(set(texts)) < 300
    assert all(2_000 < len(each) < 7_000 for each in texts)


async def test_a_filled_index_answers_as_one_that_workers_filled(redis_url: str) -> None:
    namespace = f"filled-{secrets.token_hex(6)}"
    async with served(redis_url, namespace=namespace) as filled, served(redis_url) as worked:
        settings = {"NEARSTREAM_REDIS": redis_url, "NEARSTREAM_NAMESPACE": namespace}
        # It starts an event loop of its own.
        await asyncio.to_thread(fill, settings, DOCUMENTS)
        signer = worked.deployment.signer()
        for number in range(DOCUMENTS):
            document = Document(
                id=f"page-{number:09}", text=text(number), observed_at=from_milliseconds(START_MS + number)
            )
            await worked.match(signer.sign(document))
        equal = 0
        for question in questions(DOCUMENTS)[:40]:
            (_, one), (_, other) = await filled.ask(question), await worked.ask(question)
            equal += (one["verdict"], one["relation"]) == (other["verdict"], other["relation"])
        # The order of two batches that are filled side by side may decide which of two copies is compared.
        assert equal >= 36
