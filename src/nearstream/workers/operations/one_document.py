"""Sign the only document of a file."""

from itertools import islice

from nearstream.schemas.documents.record import ConsumerRecord
from nearstream.schemas.documents.signature import Signature
from nearstream.schemas.topics.codec import InvalidMessageError
from nearstream.schemas.topics.dead_letter import Reason
from nearstream.streams.ingest.parse import Removal
from nearstream.workers.files.content import UnreadableFileError
from nearstream.workers.files.source import Refused, read
from nearstream.workers.operations.terminal import PATH_CHARACTERS, escaped
from nearstream.workers.pipeline.deployment import Deployment
from nearstream.workers.pipeline.in_process import Embedded


def signed_file(job: Embedded, path: str, deployment: Deployment) -> tuple[Signature, str]:
    """Return the signature and the text of the only document of a file, which may have no words.

    Args:
        job: Signs it.
        path: A file of any kind that `read` accepts.
        deployment: Its key and settings are used to read mail.

    Raises:
        UnreadableFileError: The file cannot be read.
        InvalidMessageError: The file holds no document, several, or a removal.
    """
    try:
        return _signed(job, _record(path, deployment))
    except InvalidMessageError as error:
        raise InvalidMessageError(error.reason, f"{escaped(path, PATH_CHARACTERS)}: {error.detail}") from None


def _signed(job: Embedded, record: ConsumerRecord) -> tuple[Signature, str]:
    unsigned = job.read(record)
    if isinstance(unsigned, Removal):
        raise InvalidMessageError(Reason.INVALID_MESSAGE, "expected a document, not a removal")
    return job.signer.sign(*unsigned), unsigned.document.text or ""


def _record(path: str, deployment: Deployment) -> ConsumerRecord:
    """Return the record that would carry the only document of a file."""
    found = read([path], deployment.key, mail_content=deployment.settings.mail_content)
    items = list(islice(found, 2))
    records = []
    for item in items:
        if isinstance(item, Refused):
            raise UnreadableFileError(f"{escaped(path, PATH_CHARACTERS)}: {item.reason}")
        records.append(item.record)
    if len(records) != 1:
        raise InvalidMessageError(Reason.INVALID_MESSAGE, "expected one document in the file")
    return records[0]
