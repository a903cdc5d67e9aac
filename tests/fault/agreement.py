"""Compare a deployment of an integration test with a single process."""

from nearstream.schemas.codec import decode_signature
from nearstream.schemas.record import ConsumerRecord
from nearstream.schemas.topics import SIGNATURES
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
    return {name: count for name, count in disagreements(found, told).items() if count}


def _scheme(record: ConsumerRecord) -> str:
    """Return the scheme of a signature, a verdict or an event. Other records have none."""
    if record.topic.endswith(SIGNATURES.name) and record.value:
        return decode_signature(record.value).scheme
    return text(record, "ce_scheme")
