"""Where the index keeps a document, and what it knows of its states."""

from nearstream.streams.matching.arriving import document_hash
from nearstream.streams.matching.protocol.decision import founder_of
from nearstream.streams.store.messages import Query, View
from nearstream.workers.kafka.partitioning import partition_of
from nearstream.workers.redis.index.index import RedisIndex
from nearstream.workers.redis.server.client import ask
from nearstream.workers.redis.server.layout import KeyKind, StoreLayout


def home_of(layout: StoreLayout, document_key: str) -> int:
    """Return the slot that keeps the states of a document. The partition of its signatures decides it."""
    partition = partition_of(document_key.encode("utf-8", "surrogatepass"), layout.shape.partitions)
    return layout.shape.home(partition)


async def current_number(index: RedisIndex, document_key: str) -> int:
    """Return the number of the current state of a document, 0 without it.

    Raises:
        IndexUnavailableError: The server does not answer.
    """
    layout, document = index.layout, document_hash(document_key)
    key = layout.tag(home_of(layout, document_key)) + KeyKind.REGISTRY + layout.registry_chunk(document)
    return int(await ask(index.asking, "HGET", key, document) or 0)


async def current_state(index: RedisIndex, document_key: str) -> tuple[int, View] | None:
    """Return the number of the current state of a document and what is known about it, None without it.

    Raises:
        IndexUnavailableError: The server does not answer.
    """
    number = await current_number(index, document_key)
    (view,) = await index.store().fetch([Query(number, record=True)]) if number else (None,)
    return None if view is None or view.is_gone else (number, view)


def founder_in(number: int, view: View) -> int:
    """Return the founder of the family of a state, which is the state itself until something is decided."""
    return number if view.decision is None else founder_of(view.decision)
