"""From settings to the objects that decide."""

from schemas.dead_letter import Payload
from streams.completion import Bounds
from streams.hashing import HashKey
from streams.index import Index, IndexLimits
from streams.matcher import Matcher
from streams.scheme import Scheme, preset
from streams.signer import NATIVE_FAULT, Signer
from streams.thresholds import Thresholds
from workers.redis_address import IndexAddress
from workers.settings import Settings, SettingsError
from workers.tls import trusting


def hash_key(settings: Settings) -> HashKey:
    """The deployment's key; in the development profile, without one, the public key."""
    if settings.hash_key:
        return HashKey.from_secret(settings.hash_key.encode())
    return HashKey.public()


def scheme(settings: Settings, key: HashKey) -> Scheme:
    """The preset with the bands and rows asked for.

    Raises:
        SettingsError: Bands and rows need more slots than the sketch has.
    """
    try:
        return preset(settings.scheme, key, bands=settings.bands or None, rows=settings.rows or None)
    except ValueError as error:
        raise SettingsError(f"NEARSTREAM_BANDS, NEARSTREAM_ROWS: {error}") from None


def matcher(settings: Settings, index: Index, key: HashKey) -> Matcher:
    """The matcher with the thresholds and relations asked for.

    Raises:
        SettingsError: The thresholds are out of order.
    """
    try:
        thresholds = Thresholds(
            mean_resemblance_min=settings.mean_resemblance_min,
            containment_min=settings.containment_min,
            order_free_min=settings.order_free_min,
        )
    except ValueError as error:
        raise SettingsError(f"NEARSTREAM_*_MIN: {error}") from None
    return Matcher(index, scheme(settings, key), key, thresholds, frozenset(settings.relations.split()))


def signer(settings: Settings, key: HashKey) -> Signer:
    """The signer of the deployment's scheme."""
    return Signer(scheme(settings, key), key, settings.max_text_bytes)


def native_fault() -> str:
    """What is wrong with a C twin that is there but cannot serve, with the remedy; an empty string if nothing is."""
    if not NATIVE_FAULT:
        return ""
    return (
        f"numpy signs, several times as slowly: the compiled part cannot be used ({NATIVE_FAULT}): build it anew by "
        "`pip install --force-reinstall --no-deps nearstream`, in a checkout by `pip install -e .`"
    )


def limits(settings: Settings) -> IndexLimits:
    """The bounds of the index."""
    return IndexLimits(settings.bucket_cap, settings.candidates, settings.retention_seconds, settings.index_documents)


def index_address(settings: Settings, key: HashKey) -> IndexAddress:
    """Where the shared index stands, and whose it is.

    Raises:
        SettingsError: The scheme cannot be, or the file of certificates to trust holds none.
    """
    if settings.redis_ca_path:
        trusting("NEARSTREAM_REDIS_CA_PATH", settings.redis_ca_path)
    return IndexAddress(
        settings.redis,
        settings.namespace,
        scheme(settings, key).name,
        key.fingerprint,
        limits(settings),
        ca_path=settings.redis_ca_path or None,
        parts=settings.index_parts,
        cluster=settings.redis_cluster == "yes",
    )


def bounds(settings: Settings) -> Bounds:
    """What a document may be."""
    return Bounds(settings.max_text_bytes, settings.max_value_bytes, settings.max_clock_skew_seconds)


def payload(settings: Settings) -> Payload:
    """How much of the original bytes a dead letter keeps."""
    return Payload(settings.dead_letter_payload)
