"""Explain how two documents relate and meet, without a write."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from nearstream.schemas.documents.document import document_key
from nearstream.schemas.documents.signature import Signature
from nearstream.schemas.topics.codec import InvalidMessageError, decode_signature
from nearstream.schemas.topics.dead_letter import Reason
from nearstream.streams.matching.candidate import Candidate
from nearstream.streams.matching.counterpart import Compared, Newcomer, compare_with
from nearstream.streams.matching.protocol.decision import KeyMatch
from nearstream.streams.signing.scheme import Keys, hit_probability
from nearstream.workers.operations.inspection import DocumentStatus, Inspected, inspect
from nearstream.workers.operations.terminal import PATH_CHARACTERS, escaped
from nearstream.workers.pipeline.deployment import Deployment
from nearstream.workers.redis.index.index import index_to_read
from nearstream.workers.redis.reading.document_facts import BucketFacts, StateFacts
from nearstream.workers.redis.server.client import until_answered

ID_PREFIX, SIGNATURE_SUFFIX = "id:", ".msgpack"
SIGNATURE_BYTES_MAX = 4 * 1024 * 1024

_NO_KEYS = Keys(b"", None, (), ())


@dataclass(frozen=True)
class Side:
    """One of two documents.

    Attributes:
        name: As it was asked for.
        signature: Its signature. Without its record on `signatures`, as the index keeps it. None: nothing is known.
        keys: Its index keys. None: not known, because its signature is not whole or not of this scheme.
        inspected: What is known of it in the index. None: it was given as a file.
        text: The text of a file, empty if only the signature is known.
    """

    name: str
    signature: Signature | None
    keys: Keys | None
    inspected: Inspected | None = None
    text: str = ""

    @property
    def state(self) -> StateFacts | None:
        """Its current state in the index."""
        return next(iter(self.inspected.states), None) if self.inspected else None

    @property
    def is_found(self) -> bool:
        """Whether it is a file or live in the index."""
        return self.inspected is None or self.inspected.status is DocumentStatus.LIVE


@dataclass(frozen=True)
class Meeting:
    """How two documents meet in the index.

    Attributes:
        digest: They share the key of the digest.
        lineage: They share the key of the lineage.
        chance: Probability that two texts of this resemblance share a band, and for the ends of the interval.
        buckets: The buckets of shared keys, with whether the earlier document is in them. Empty without the index.
        looked_up: Candidates that the index gives for the keys of the later document now. None: it was not asked.
        is_candidate: The earlier document is one of them.
    """

    digest: bool
    lineage: bool
    chance: tuple[float, float, float]
    buckets: tuple[BucketFacts, ...] = ()
    looked_up: int | None = None
    is_candidate: bool = False


@dataclass(frozen=True)
class Explained:
    """Two documents, their comparison and their meeting.

    Attributes:
        later: The one that arrived later, or would arrive now.
        earlier: The other one.
        compared: Their comparison. None: they cannot be compared.
        meeting: How they meet. None: keys of one are not known.
    """

    later: Side
    earlier: Side
    compared: Compared | None = None
    meeting: Meeting | None = None


async def explain(
    deployment: Deployment, names: tuple[str, str], collection: str, wait_seconds: float, *, quiet: bool
) -> Explained:
    """Explain how two documents relate.

    Args:
        deployment: The deployment whose scheme, thresholds and index apply.
        names: Of each a file with one document, a file with its signature (`.msgpack`), or its id in the index. With
            `id:` in front it is always an id.
        collection: Collection of the ids.
        wait_seconds: How long Redis and Kafka may take to answer. They are asked only about ids.
        quiet: Show no progress.

    Raises:
        UnreadableFileError: A file cannot be read.
        InvalidMessageError: A file holds no document or no signature.
        IndexUnavailableError: Redis did not answer within `wait_seconds`.
        IndexLostError: There is no index.
        KafkaUnreachableError: No broker answered within `wait_seconds`.
        SettingsError: The index or the topic does not fit the settings.
    """
    one, other = [await _side(deployment, name, collection, wait_seconds, quiet=quiet) for name in names]
    later, earlier = (one, other) if _came_later(one, other) else (other, one)
    if not _comparable(deployment, later) or not _comparable(deployment, earlier):
        return Explained(later, earlier)
    if (
        later.signature is None
        or earlier.signature is None
        or later.signature.collection != earlier.signature.collection
    ):
        return Explained(later, earlier)
    scheme = deployment.scheme
    newcomer = Newcomer(
        scheme.kept(later.signature), later.keys or _NO_KEYS, scheme, deployment.thresholds, (False, False)
    )
    candidates = await _candidates(deployment, newcomer, later, earlier, wait_seconds)
    state = (earlier.signature.id, earlier.signature.version)
    own = [each for each in candidates or () if (each.earlier.id, each.earlier.version) == state]
    candidate = own[0] if own else _candidate(later, earlier)
    (compared,) = compare_with(newcomer, [candidate])
    meeting = _meeting(deployment, later, earlier, compared)
    if meeting and candidates is not None:
        meeting = replace(meeting, looked_up=len(candidates), is_candidate=bool(own))
    return Explained(later, earlier, compared, meeting)


async def _side(deployment: Deployment, name: str, collection: str, wait_seconds: float, *, quiet: bool) -> Side:
    scheme, key = deployment.scheme, deployment.key
    if _is_file(name):
        signature, text = _of_file(deployment, name)
        return Side(name, signature, _keys(deployment, signature), text=text)
    asked = document_key(collection, name.removeprefix(ID_PREFIX))
    inspected = await inspect(deployment, asked, wait_seconds, quiet=quiet)
    if inspected.signature is not None:
        return Side(name, inspected.signature, scheme.keys(inspected.signature, key), inspected)
    kept = inspected.states[0].signature if inspected.states else None
    return Side(name, kept, None, inspected)


def _is_file(name: str) -> bool:
    return not name.startswith(ID_PREFIX) and Path(name).exists()


def _of_file(deployment: Deployment, path: str) -> tuple[Signature, str]:
    if path.endswith(SIGNATURE_SUFFIX):
        return _stored(path), ""
    from nearstream.workers.operations.one_document import signed_file  # these load the readers of all files
    from nearstream.workers.pipeline.in_process import embedded

    return signed_file(embedded(deployment), path, deployment)


def _stored(path: str) -> Signature:
    """Return the signature in a file, which is the value of a record of `signatures`."""
    with Path(path).open("rb") as file:
        packed = file.read(SIGNATURE_BYTES_MAX + 1)
    if len(packed) > SIGNATURE_BYTES_MAX:
        raise InvalidMessageError(Reason.TOO_LARGE, f"{escaped(path, PATH_CHARACTERS)}: expected a signature")
    try:
        return decode_signature(packed)
    except InvalidMessageError as error:
        raise InvalidMessageError(error.reason, f"{escaped(path, PATH_CHARACTERS)}: {error.detail}") from None


def _keys(deployment: Deployment, signature: Signature) -> Keys | None:
    if signature.scheme != deployment.scheme.name or not signature.n_bytes:
        return None
    deployment.scheme.check(signature)
    return deployment.scheme.keys(signature, deployment.key)


def _came_later(one: Side, other: Side) -> bool:
    """Return whether the first document came later. Who was found related to another one came later than that."""
    named = _names(one, other), _names(other, one)
    return named[0] if named[0] != named[1] else _arrival(one) >= _arrival(other)


def _names(one: Side, other: Side) -> bool:
    number = other.state.number if other.state else 0
    return any(pair.number == number for pair in (one.state.pairs if one.state else ()))


def _arrival(side: Side) -> tuple[float, int, tuple[int, str, int, int, str]]:
    """Return the sort key of arrivals: documents of the index by the time of their registration, then files."""
    order = side.signature.order if side.signature else (0, "", 0, 0, "")
    if side.state is None:
        return float("inf") if side.inspected is None else 0, 0, order
    return side.state.registered_at_ms, side.state.number, order


def _comparable(deployment: Deployment, side: Side) -> bool:
    signature = side.signature
    return signature is not None and signature.scheme == deployment.scheme.name and signature.n_bytes > 0


async def _candidates(
    deployment: Deployment, newcomer: Newcomer, later: Side, earlier: Side, wait_seconds: float
) -> Sequence[Candidate] | None:
    """Return the candidates that the index gives for the later document now.

    None if the index need not be asked, because the earlier one is not in it, or cannot be asked without keys.
    """
    if earlier.state is None or later.keys is None:
        return None
    address = replace(deployment.index_address(), beside=True)
    async with index_to_read(address, wait_seconds) as index:
        (near,) = await until_answered(partial(index.neighbours_of, [newcomer]), wait_seconds)
        return near.candidates


def _candidate(later: Side, earlier: Side) -> Candidate:
    """Return the earlier document as a candidate with the keys that both share.

    Whether these are rare is not known without the index, so they are taken for rare.
    """
    signature, ours, theirs = earlier.signature, later.keys or _NO_KEYS, earlier.keys or _NO_KEYS
    if signature is None:
        raise ValueError(f"a signature of {earlier.name!r} expected")
    number = earlier.state.number if earlier.state else 0
    match = KeyMatch(
        len(set(ours.bands) & set(theirs.bands)),
        len(set(ours.anchors) & set(theirs.anchors)),
        by_digest=bool(ours.digest) and ours.digest == theirs.digest,
        by_lineage=ours.lineage is not None and ours.lineage == theirs.lineage,
    )
    return Candidate(number, signature, match, len(theirs.anchors))


def _meeting(deployment: Deployment, later: Side, earlier: Side, compared: Compared) -> Meeting | None:
    ours, theirs = later.keys, earlier.keys
    if ours is None or theirs is None:
        return None
    scheme, resemblance = deployment.scheme, compared.estimate.resemblance
    bands = scheme.bands.bands
    points = (resemblance.value, resemblance.low, resemblance.high)
    value, low, high = (hit_probability(point, bands, scheme.bands.rows) for point in points)
    shared = {key.hex() for key in (ours.digest, ours.lineage, *ours.bands, *ours.anchors) if key is not None}
    buckets = earlier.inspected.buckets if earlier.inspected else ()
    return Meeting(
        ours.digest == theirs.digest,
        ours.lineage is not None and ours.lineage == theirs.lineage,
        (value, low, high),
        tuple(bucket for bucket in buckets if bucket.key in shared),
    )
