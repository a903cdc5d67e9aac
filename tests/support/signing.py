"""Records of documents and a signer for tests."""

from nearstream.schemas.documents.record import ConsumerRecord, Headers
from nearstream.streams.ingest.defaults import DocumentLimits
from nearstream.workers.pipeline.dead_letters import DeadLetterWriter
from nearstream.workers.pipeline.sign import Signing
from tests.support.made_up import SIGNER

TIMESTAMP_MS = 1_772_439_300_000


def signer() -> Signing:
    letters = DeadLetterWriter("p.nearstream.dead-letters.v1", "nearstream/0 sign", "full")
    return Signing(SIGNER, DocumentLimits(), "p.nearstream.signatures.v1", letters)


def record(
    value: bytes | None, headers: Headers | None = None, key: bytes | None = None, offset: int = 4410
) -> ConsumerRecord:
    return ConsumerRecord("nearstream.documents.v1", 2, offset, TIMESTAMP_MS, key, value, headers or [])
