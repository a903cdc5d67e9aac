"""Sign the documents of files, read signatures that were made elsewhere, and ask the index about both."""

import sys
from collections import Counter
from collections.abc import AsyncGenerator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, NamedTuple

from msgspec.structs import replace

from nearstream.schemas.checks.check import CheckAnswer
from nearstream.schemas.documents.document import Document
from nearstream.schemas.documents.signature import SIGNATURE_MAX_BYTES, Signature
from nearstream.schemas.topics.codec import InvalidMessageError, decode_signature_line
from nearstream.streams.matching.arriving import Arrival
from nearstream.streams.matching.checking import answer, found_in_text, known_reference
from nearstream.streams.matching.counterpart import novelty_of
from nearstream.streams.matching.looking_up import find, newcomers
from nearstream.streams.relations.novelty import Novelty, novelty_in_text
from nearstream.streams.signing.scheme import Scheme
from nearstream.workers.files.source import FIELDS_OF_DOCUMENTS, STDIN, Item, Refused, read
from nearstream.workers.files.tables import Columns
from nearstream.workers.operations.terminal import PATH_CHARACTERS, escaped, print_message
from nearstream.workers.pipeline.deployment import Deployment
from nearstream.workers.pipeline.in_process import Outcome, embedded

if TYPE_CHECKING:  # the client of Redis, which signing does not need
    from nearstream.workers.redis.index.index import RedisIndex

LINE_MAX_BYTES = 2 * SIGNATURE_MAX_BYTES  # base64 takes a third more than bytes, names may be escaped
NO_WORDS = "expected a text with words"
_BROKEN = frozenset({"parse_fallback", "truncated"})


class Signed(NamedTuple):
    """A signature."""

    source: str  # file and line of the document or of the signature, for messages
    signature: Signature  # the signature, of a text with words
    degraded: tuple[str, ...] = ()  # what was incomplete about reading the document
    text: str = ""  # the text, empty if the signature came without one


def sign_files(
    deployment: Deployment,
    paths: Iterable[str],
    columns: Columns = FIELDS_OF_DOCUMENTS,
    against: frozenset[str] = frozenset(),
) -> Iterator[Signed | Refused]:
    """Yield the signature of each document of the paths, which blocks while HTML becomes text.

    It names further collections to compare with.
    """
    job = embedded(deployment)
    try:
        for item in read(paths, deployment.key, rules=deployment.mail_rules(), columns=columns):
            yield _signed(*job.read_item(item, partial(_named, against)))
    finally:
        job.pages.close()


def _named(against: frozenset[str], document: Document) -> Document:
    return replace(document, against=tuple(sorted({*document.against, *against})))


def _signed(outcome: Outcome, arrival: Arrival | None) -> Signed | Refused:
    if arrival is None or arrival.signature is None:
        reason = outcome.refusal or (NO_WORDS if outcome.is_empty else "expected a document")
        return Refused(outcome.source, reason)
    return Signed(outcome.source, arrival.signature, outcome.degraded, outcome.text)


def anonymous(signature: Signature) -> Signature:
    """Return a signature that names nothing but its text: the id is the digest."""
    return replace(
        signature,
        id=signature.digest.hex(),
        lineage=None,
        url=None,
        source=None,
        labels={},
        sender=b"",
        recipients=b"",
        against=(),
    )


def read_signatures(scheme: Scheme, paths: Sequence[str]) -> Iterator[Signed | Refused]:
    """Yield the signatures of files (`-`: standard input), one a line as `nearstream sign` writes them."""
    for path in paths:
        try:
            with _opened(path) as lines:
                yield from _of_lines(scheme, "standard input" if path == STDIN else path, lines)
        except OSError as error:
            yield Refused(path, error.strerror or str(error))


@contextmanager
def _opened(path: str) -> Iterator[BinaryIO]:
    if path == STDIN:
        yield sys.stdin.buffer
        return
    with Path(path).open("rb") as file:
        yield file


def _of_lines(scheme: Scheme, name: str, lines: BinaryIO) -> Iterator[Signed | Refused]:
    number = 0
    while line := lines.readline(LINE_MAX_BYTES + 1):
        number += 1
        source = f"{name}:{number}"
        if len(line) > LINE_MAX_BYTES:
            yield Refused(source, f"expected lines of at most {LINE_MAX_BYTES} bytes; the rest of the file is not read")
            return
        if line.strip():
            yield _of_line(scheme, source, line)


def _of_line(scheme: Scheme, source: str, line: bytes) -> Signed | Refused:
    try:
        signature = decode_signature_line(line)
    except InvalidMessageError as error:
        return Refused(source, str(error))
    reason = why_not_sent(signature, scheme)
    return Refused(source, reason) if reason else Signed(source, signature)


def why_not_sent(signature: Signature, scheme: Scheme) -> str:
    """Return the reason for refusing a signature, empty for one that workers accept."""
    if signature.scheme != scheme.name:
        return mismatch(scheme.name, signature.scheme)
    try:
        scheme.check(signature)
    except InvalidMessageError as error:
        return str(error)
    if not signature.n_bytes:
        return NO_WORDS
    if signature.origin is not None:
        # Events are about positions on `documents`, and only workers know them.
        return "expected a signature of `nearstream sign`, this one names a record of Kafka"
    return ""


def mismatch(expected: str, found: str) -> str:
    """Return why a signature with another scheme is refused, and what to do about it."""
    keys = [name.rsplit("-", 2)[1:2] for name in (expected, found)]
    if found.count("-") >= 2 and keys[0] != keys[1]:
        return (
            f"signed with the hash key {keys[1][0][1:9]}, expected {keys[0][0][1:9]}: sign with the same"
            " NEARSTREAM_HASH_KEY"
        )
    return f"signed with the scheme {found}, expected {expected}: sign with the same NEARSTREAM_SCHEME"


def reported(items: Iterable[Item | Refused], incomplete: Counter[str]) -> Iterator[Item | Refused]:
    """Yield the items, count what is incomplete, and report on stderr where a broken message is."""
    for item in items:
        if isinstance(item, Item):
            report(item.source, item.degraded, incomplete)
        yield item


def report(source: str, degraded: Iterable[str], incomplete: Counter[str]) -> None:
    """Count what was incomplete about a document, and report on stderr where a broken one is."""
    reasons = sorted(degraded)
    incomplete.update(reasons)
    broken = [reason for reason in reasons if reason in _BROKEN]
    if broken:
        print_message(f"read in part {escaped(source, PATH_CHARACTERS)}: {', '.join(broken)}")


# A document, what it is to those of the index, and what is new in it beside the documents of its collection and of
# references, with places in the text.
Checked = tuple[Signed, CheckAnswer, Novelty]


async def check_signatures(
    deployment: Deployment,
    signed: Iterable[Signed | Refused],
    wait_seconds: float,
    against: frozenset[str] = frozenset(),
) -> AsyncGenerator[Checked | Refused]:
    """Yield what each document is to those of the index and of other collections. Nothing is written."""
    from nearstream.workers.redis.index.index import index_to_read

    async with index_to_read(deployment.index_address(), wait_seconds) as index:
        for item in signed:
            yield item if isinstance(item, Refused) else await _checked(deployment, index, item, wait_seconds, against)


async def _checked(
    deployment: Deployment, index: "RedisIndex", item: Signed, wait_seconds: float, against: frozenset[str]
) -> Checked:
    from nearstream.workers.redis.server.client import until_answered

    asked = newcomers(item.signature, deployment.scheme, deployment.key, deployment.thresholds, against)
    near = await until_answered(partial(index.neighbours_of, asked), wait_seconds)
    found, *referred = map(find, asked, near)
    if item.text:
        found = found_in_text(found, item.text, deployment.scheme.text)
    matches = map(known_reference, referred)
    told = answer(found, deployment.settings.bulk_count)
    told = replace(told, references=tuple(each for each in matches if each is not None))
    known = [each for one in (found, *referred) for each in one.related]
    new = novelty_of(asked[0].signature, known)
    if item.text:
        new = novelty_in_text(new, item.text, deployment.scheme.text)
    return item, told, new
