"""The expected outcome: a single process that reads one document at a time."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from nearstream.schemas.documents.record import ConsumerRecord
from nearstream.schemas.documents.signature import Signature
from nearstream.schemas.topics.codec import InvalidMessageError, encode_json
from nearstream.streams.ingest.parse import Removal
from nearstream.streams.matching.arriving import Arrival
from nearstream.workers.config.settings import Settings
from nearstream.workers.pipeline.deployment import Deployment
from nearstream.workers.pipeline.in_process import Embedded, embedded
from tests.fault.texts import Place, Texts, compare_all, true_events


@dataclass
class Expected:
    """The outcome of every record.

    The ids of verdicts and retractions are equal for every order of the partitions. The values of verdicts and the
    choice of relation events are those of one order.
    """

    texts: Texts  # which texts are related, whatever arrived when
    signatures: dict[Place, Signature] = field(default_factory=dict)  # the signature of each document
    verdicts: dict[str, bytes] = field(default_factory=dict)  # verdict id to value
    events: dict[str, bytes] = field(default_factory=dict)  # id of a relation event to value
    retractions: dict[str, bytes] = field(default_factory=dict)  # event id to value
    # For each event found, what a process says that knows only its two documents, if it says anything.
    true: dict[str, bytes] = field(default_factory=dict)
    # Verdicts about states that were removed later. If both meet in one batch, there is no verdict.
    withdrawn: set[str] = field(default_factory=set)
    # Documents without a signature because nothing is left of their text.
    empty: set[Place] = field(default_factory=set)
    refused: dict[Place, str] = field(default_factory=dict)  # records that become dead letters, with the reason of each
    removed: dict[Place, str] = field(default_factory=dict)  # removals, with the document key of each
    # Full buckets that were found. Unless it is 0, the families too depend on the order, and a comparison is
    # meaningless.
    overflows: int = 0


def in_order_of_time(records: Iterable[ConsumerRecord]) -> list[ConsumerRecord]:
    """Return records in the order in which they were sent, across partitions."""
    return sorted(records, key=lambda record: (record.timestamp_ms, record.partition, record.offset))


async def expected(
    settings: Settings, records: Iterable[ConsumerRecord], found: Iterable[tuple[str, bytes]] = ()
) -> Expected:
    """Return the outcome of these records of `documents`, read one at a time in this order.

    Args:
        settings: Those of the deployment.
        records: The records.
        found: Ids and values of relation events, to be judged.
    """
    deployment = Deployment.of(settings)
    job, outcome, told = embedded(deployment), Expected(Texts()), dict[str, set[str]]()
    for record in records:
        place = record.partition, record.offset
        try:
            arrival = _arrival(job, record)
        except InvalidMessageError as error:
            outcome.refused[place] = str(error.reason)
            continue
        verdicts_of_document = told.setdefault(arrival.document_key, set())
        if arrival.signature is None:
            outcome.removed[place] = arrival.document_key
            outcome.withdrawn |= verdicts_of_document
        elif not arrival.signature.n_bytes:
            outcome.empty.add(place)
            continue
        else:
            outcome.signatures[place] = arrival.signature
        verdicts_of_document |= await _match(job, arrival, outcome)
    outcome.overflows = job.matcher.counts.full_buckets
    outcome.texts = compare_all(deployment, outcome.signatures.values())
    outcome.true = await true_events(deployment, outcome.signatures, found)
    return outcome


def _arrival(job: Embedded, record: ConsumerRecord) -> Arrival:
    read = job.read(record)
    if isinstance(read, Removal):
        return Arrival(read.document_key, None, None, read.removed_at_ms, read.origin)
    signature = job.signer.sign(*read)
    return Arrival(signature.document_key, signature)


async def _match(job: Embedded, arrival: Arrival, outcome: Expected) -> set[str]:
    """Match an arrival, keep its results and return the ids of its verdicts."""
    (matched,) = await job.matcher.match_all([arrival])
    results = outcome.retractions if arrival.signature is None else outcome.events
    results.update((event.event_id, encode_json(event)) for event in matched.events)
    if matched.verdict is None:
        return set()
    outcome.verdicts[matched.verdict.event_id] = encode_json(matched.verdict)
    return {matched.verdict.event_id}
