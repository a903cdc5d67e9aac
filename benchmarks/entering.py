"""Add documents to a store without comparing them with others."""

from collections.abc import Sequence

from nearstream.schemas.documents.signature import Signature
from nearstream.streams.fingerprints.hashing import HashKey
from nearstream.streams.matching.arriving import Arrival, Arriving, message_of, pack_keys
from nearstream.streams.signing.scheme import Scheme
from nearstream.streams.store.messages import Entry
from nearstream.streams.store.store import Store


async def enter(store: Store, scheme: Scheme, key: HashKey, signatures: Sequence[Signature]) -> None:
    """Register documents and enter all their buckets. Nothing is decided about them, so each is alone in its family."""
    messages, entries = [], []
    for signature in signatures:
        arriving = Arriving(scheme.kept(signature), scheme.keys(signature, key), scheme)
        message = message_of(Arrival(signature.document_key, signature), arriving, store.number(None))
        messages.append(message)
        entries.append(Entry(message.number, 0, b"".join(pack_keys(arriving.keys))))
    await store.register(messages)
    await store.enter(entries)
