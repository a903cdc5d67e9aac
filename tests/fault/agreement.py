"""Compare a deployment of an integration test with a single process."""

from collections.abc import Sequence

from nearstream.schemas.documents.document import document_key
from nearstream.schemas.documents.record import ConsumerRecord
from nearstream.schemas.topics.codec import decode_event, decode_signature
from nearstream.schemas.topics.table import SIGNATURES
from nearstream.schemas.verdicts.events import Retraction
from nearstream.workers.pipeline.deployment import Deployment
from tests.fault.oracle import expected, in_order_of_time
from tests.fault.reading import TOPICS, grouped, text
from tests.fault.verify import disagreements, last_values
from tests.support.deployment import LocalDeployment


async def disagreement(deployment: LocalDeployment) -> dict[str, int]:
    """Return what is wrong with the results on the topics, with counts. Nothing: an empty dict.

    Signatures, verdicts and events of other schemes are left out.
    """
    scheme = Deployment.of(deployment.settings).scheme.name
    records = await deployment.read(*(topic.name for topic in TOPICS))
    found = grouped(deployment.settings.topic_prefix, [each for each in records if _scheme(each) in ("", scheme)])
    told = await expected(deployment.settings, in_order_of_time(found.documents), last_values(found.events).items())
    unseen = _removed_unseen([record for record in records if record.topic.endswith(SIGNATURES.name)], scheme)
    told.retractions = {name: value for name, value in told.retractions.items() if _key(value) not in unseen}
    return {name: count for name, count in disagreements(found, told).items() if count}


def _removed_unseen(signatures: Sequence[ConsumerRecord], scheme: str) -> set[str]:
    """Return the keys of documents whose removal came before their first signature of this scheme.

    A signer of another scheme may be ahead, and a removal holds for all schemes. There is nothing to retract then.
    """
    seen, unseen = set[bytes | None](), set[str]()
    for record in signatures:
        if record.value is not None and _scheme(record) == scheme:
            seen.add(record.key)
        elif record.value is None and record.key not in seen:
            unseen.add((record.key or b"").decode())
    return unseen


def _key(value: bytes) -> str:
    """Return the document key of a retraction."""
    event = decode_event(value)
    return document_key(event.collection, event.document_id) if isinstance(event, Retraction) else ""


def _scheme(record: ConsumerRecord) -> str:
    """Return the scheme of a signature, a verdict or an event. Other records have none."""
    if record.topic.endswith(SIGNATURES.name) and record.value:
        return decode_signature(record.value).scheme
    return text(record, "ce_scheme")
