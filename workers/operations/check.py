"""Ask the shared index about documents, without adding them."""

from collections.abc import AsyncGenerator, Iterable
from functools import partial
from typing import NamedTuple

from nearstream.schemas.check import CheckAnswer
from nearstream.streams.checking import answer, contained, find, newcomer
from nearstream.workers.operations.signatures import Signed
from nearstream.workers.pipeline.deployment import Deployment
from nearstream.workers.pipeline.file_source import Refused
from nearstream.workers.redis_index.client import until_answered
from nearstream.workers.redis_index.index import RedisIndex


class Checked(NamedTuple):
    """The answer about one document.

    Attributes:
        source: File and line, for messages.
        document_id: The id of the document.
        answer: What it is to the documents of the index.
        text: The text of the document, empty if only its signature is known.
    """

    source: str
    document_id: str
    answer: CheckAnswer
    text: str


async def check_signatures(
    deployment: Deployment, signed: Iterable[Signed | Refused], wait_seconds: float
) -> AsyncGenerator[Checked | Refused]:
    """Yield what each document is to those of the index. Nothing is written.

    Raises:
        SettingsError: The index has another scheme or key.
        IndexLostError: There is no index.
        IndexUnavailableError: Redis did not answer within `wait_seconds`.
    """
    index = await until_answered(partial(RedisIndex.open_to_read, deployment.index_address()), wait_seconds)
    try:
        for item in signed:
            yield item if isinstance(item, Refused) else await _checked(deployment, index, item, wait_seconds)
    finally:
        await index.close()


async def _checked(deployment: Deployment, index: RedisIndex, item: Signed, wait_seconds: float) -> Checked:
    asked = newcomer(item.signature, deployment.scheme, deployment.key, deployment.thresholds)
    near = await until_answered(partial(index.neighbours, asked), wait_seconds)
    found = find(asked, near.candidates)
    family = near.families[found.joins.number] if found.joins else None
    bulk_count = deployment.settings.bulk_count
    contains = contained(found, near.families, bulk_count)
    told = answer(found, family, bulk_count, contains=contains)
    return Checked(item.source, item.signature.id, told, item.text)
