"""Ask the shared index about documents, without adding them."""

from collections.abc import AsyncGenerator, Iterable
from functools import partial
from typing import NamedTuple

from msgspec.structs import replace

from nearstream.schemas.checks.check import CheckAnswer
from nearstream.streams.matching.checking import answer, found_in_text
from nearstream.streams.matching.counterpart import novelty_of
from nearstream.streams.matching.looking_up import find, newcomers, reference_match
from nearstream.streams.relations.novelty import Novelty
from nearstream.streams.relations.sent_novelty import novelty_in_text
from nearstream.workers.files.source import Refused
from nearstream.workers.operations.signatures import Signed
from nearstream.workers.pipeline.deployment import Deployment
from nearstream.workers.redis.index.index import RedisIndex, index_to_read
from nearstream.workers.redis.server.client import until_answered


class Checked(NamedTuple):
    """The answer about one document.

    Attributes:
        source: File and line, for messages.
        document_id: The id of the document.
        answer: What it is to the documents of the index.
        text: The text of the document, empty if only its signature is known.
        novelty: What is new in it beside the documents of its collection and of references, with places in the text.
            None: the scheme has no LD signatures.
    """

    source: str
    document_id: str
    answer: CheckAnswer
    text: str
    novelty: Novelty | None = None


async def check_signatures(
    deployment: Deployment,
    signed: Iterable[Signed | Refused],
    wait_seconds: float,
    against: frozenset[str] = frozenset(),
) -> AsyncGenerator[Checked | Refused]:
    """Yield what each document is to those of the index. Nothing is written.

    Args:
        deployment: The deployment.
        signed: The documents.
        wait_seconds: Longest wait for Redis.
        against: Collections with which all of them are compared too.

    Raises:
        SettingsError: The index has another scheme or key.
        IndexLostError: There is no index.
        IndexUnavailableError: Redis did not answer within `wait_seconds`.
    """
    async with index_to_read(deployment.index_address(), wait_seconds) as index:
        for item in signed:
            yield item if isinstance(item, Refused) else await _checked(deployment, index, item, wait_seconds, against)


async def _checked(
    deployment: Deployment, index: RedisIndex, item: Signed, wait_seconds: float, against: frozenset[str]
) -> Checked:
    asked = newcomers(item.signature, deployment.scheme, deployment.key, deployment.thresholds, against)
    near = await until_answered(partial(index.neighbours_of, asked), wait_seconds)
    found, *referred = map(find, asked, near)
    if item.text:
        found = found_in_text(found, item.text, deployment.scheme.text)
    matches = map(reference_match, referred)
    told = answer(found, deployment.settings.bulk_count)
    told = replace(told, references=tuple(each for each in matches if each is not None))
    known = [each for one in (found, *referred) for each in one.related]
    new = novelty_of(asked[0].signature, known)
    if item.text:
        new = novelty_in_text(new, item.text, deployment.scheme.text)
    return Checked(item.source, item.signature.id, told, item.text, new)
