"""Every setting, once, from `NEARSTREAM_*` variables."""

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from schemas.dead_letter import Payload
from streams.scheme import DEFAULT_LABEL
from streams.thresholds import Thresholds
from workers.settings_bounds import BOUNDS, PATTERNS, RELATIONS

PREFIX = "NEARSTREAM_"
_KEY_MIN_BYTES = 32
_TOKEN_MIN_CHARACTERS = 16


class SettingsError(Exception):
    """A setting, or something that a setting names, that makes a start pointless; one line says which."""


def _setting(default: object, help_text: str, *, secret: bool = False) -> Any:  # noqa: ANN401 - as dataclasses.field
    return field(default=default, repr=not secret, metadata={"help": help_text, "secret": secret})


@dataclass(frozen=True)
class Settings:
    """What a deployment may want otherwise; everything else is a constant where it is used."""

    profile: str = _setting("development", "development, production or mail: defaults and refusals")
    kafka: str = _setting("127.0.0.1:9092", "brokers, host:port[,host:port]")
    kafka_security: str = _setting("PLAINTEXT", "PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL")
    kafka_sasl_mechanism: str = _setting("SCRAM-SHA-512", "PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512, for SASL")
    kafka_username: str = _setting("", "name at the brokers, for SASL")
    kafka_password: str = _setting("", "password at the brokers, for SASL", secret=True)
    kafka_ca_path: str = _setting("", "PEM file of certificates that brokers are checked by; empty: the system's")
    kafka_cert_path: str = _setting("", "PEM file of our own certificate; empty: none")
    kafka_key_path: str = _setting("", "PEM file of its private key; empty: it stands beside the certificate")
    kafka_key_password: str = _setting("", "password of the private key", secret=True)
    kafka_compression: str = _setting("", "gzip, snappy, lz4, zstd or empty: compression of what is sent")
    redis: str = _setting("redis://127.0.0.1:6379/0", "redis:// or rediss:// address of the index", secret=True)
    redis_ca_path: str = _setting("", "PEM file of certificates that rediss:// trusts; empty: the system's")
    redis_cluster: str = _setting("no", "yes: the address is a node of a Redis Cluster")
    group: str = _setting("nearstream", "Kafka group of the workers")
    group_instance: str = _setting("", "static member id of this worker; empty: none")
    namespace: str = _setting("nearstream", "first part of every key in Redis, [a-z0-9-]{1,32}")
    topic_prefix: str = _setting("", "put before every topic's name")
    hash_key: str = _setting("", "secret of the hashes, at least 32 bytes; all workers share it", secret=True)
    scheme: str = _setting(DEFAULT_LABEL, "preset of the signatures: standard, compact, bands-only, dense or noise")
    bands: int = _setting(0, "bands of the sketch, 0: the preset's")
    rows: int = _setting(0, "sketch slots in each band, 0: the preset's")
    mean_resemblance_min: float = _setting(Thresholds.mean_resemblance_min, "from here on a near-duplicate")
    containment_min: float = _setting(Thresholds.containment_min, "from here on contained")
    order_free_min: float = _setting(Thresholds.order_free_min, "from here on related at all")
    relations: str = _setting(
        "exact_duplicate near_duplicate containment version rearranged", "relations that are sent, separated by spaces"
    )
    bucket_cap: int = _setting(100, "entries of an anchor bucket, 12 to 1000")
    candidates: int = _setting(60, "earlier documents compared with each new one at most, 1 to 400")
    retention_seconds: int = _setting(2_592_000, "how long a document is found, 0: for ever")
    index_documents: int = _setting(1_000_000, "live documents expected; fixed when the index is created")
    index_parts: int = _setting(1, "parts that collections are spread over; fixed when the index is created")
    max_text_bytes: int = _setting(1024 * 1024, "UTF-8 bytes of a text and of its normal form, above: dead letter")
    max_value_bytes: int = _setting(4 * 1024 * 1024, "bytes of a record on documents, above: dead letter")
    max_clock_skew_seconds: int = _setting(86_400, "how far observed_at may lie after its record's time")
    dead_letter_payload: str = _setting("full", "full, head (64 KiB) or hash: what a dead letter keeps")
    dead_letter_max_consecutive: int = _setting(100, "dead letters in a row until a worker holds, 0: no limit")
    dead_letter_max_ratio: float = _setting(
        0.2, "share of dead letters in the last 1000 records until it holds, 0: none"
    )
    outage_seconds: int = _setting(900, "pause of a worker without Kafka or Redis until it exits, 0: for ever")
    stop_seconds: int = _setting(30, "how long a stopping worker may take")
    status: str = _setting("127.0.0.1:9464", "host:port of metrics, health and lag of a worker, or off")
    status_token: str = _setting("", "bearer token that the status port asks for; needed off loopback", secret=True)


def load(environment: Mapping[str, str] = os.environ) -> Settings:
    """The settings of this environment.

    `NEARSTREAM_X_FILE` names a file that holds the value of `NEARSTREAM_X`.

    Raises:
        SettingsError: A variable is unknown, unreadable or out of its bounds; it is named.
    """
    known = {item.name: item for item in fields(Settings)}
    given: dict[str, Any] = {}
    for variable in sorted(name for name in environment if name.startswith(PREFIX)):
        name = variable.removeprefix(PREFIX).lower()
        text = environment[variable]
        if name.endswith("_file") and name not in known:
            name, text = name.removesuffix("_file"), _from_file(variable, text)
            if variable.removesuffix("_FILE") in environment:
                raise SettingsError(f"{variable}: {variable.removesuffix('_FILE')} is set too; expected one of both")
        if name not in known:
            raise SettingsError(f"{variable}: no such setting; `nearstream settings` lists them")
        given[name] = _parsed(variable, text, type(known[name].default))
    if given.get("profile") == "mail":
        given.setdefault("dead_letter_payload", Payload.HASH.value)
    settings = Settings(**given)
    _validate(settings)
    return settings


def table(settings: Settings) -> list[tuple[str, str, str, str]]:
    """Rows of variable, value (secrets masked), default, help."""
    return [
        (
            PREFIX + item.name.upper(),
            shown(item.name, getattr(settings, item.name)),
            str(item.default),
            item.metadata["help"],
        )
        for item in fields(Settings)
    ]


def shown(name: str, value: object) -> str:
    """A value fit for a log: a secret becomes stars, an address loses its password and its options."""
    if name in ("hash_key", "kafka_password", "kafka_key_password", "status_token"):
        return "***" if value else ""
    # A password may hold any sign, and redis-py reads one from the options too.
    scheme, mark, rest = str(value).partition("://")
    _, at, place = rest.rpartition("@")
    told, options, _ = f"{scheme}{mark}{'***@' if at else ''}{place}".partition("?")
    return f"{told}?***" if options else told


def _from_file(variable: str, path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8").rstrip("\r\n")
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"{variable}: a readable text file expected: {error}") from None


def _parsed(variable: str, text: str, kind: type) -> object:
    try:
        return kind(text.strip())
    except ValueError:
        expected = "a whole number" if kind is int else "a number"
        raise SettingsError(f"{variable}: {expected} expected, got {text[:40]!r}") from None


def _validate(settings: Settings) -> None:
    for name, (low, high) in BOUNDS.items():
        value = getattr(settings, name)
        if not low <= value <= high:
            raise SettingsError(f"{PREFIX}{name.upper()}: {low} to {high} expected, got {value}")
    for name, (pattern, expected) in PATTERNS.items():
        if not re.fullmatch(pattern, getattr(settings, name)):
            # The value may hold a password, so the expectation alone is told.
            raise SettingsError(f"{PREFIX}{name.upper()}: {expected} expected")
    _validate_key(settings)
    _validate_kafka_security(settings)
    _validate_redis_security(settings)
    _validate_status(settings)
    unknown = sorted(set(settings.relations.split()) - set(RELATIONS))
    if unknown:
        raise SettingsError(f"NEARSTREAM_RELATIONS: some of {', '.join(RELATIONS)} expected, got {unknown[0]!r}")


def _validate_key(settings: Settings) -> None:
    if settings.hash_key and len(settings.hash_key.encode()) < _KEY_MIN_BYTES:
        raise SettingsError(f"NEARSTREAM_HASH_KEY: at least {_KEY_MIN_BYTES} bytes expected")
    if settings.profile != "development" and not settings.hash_key:
        raise SettingsError(f"NEARSTREAM_HASH_KEY: the profile {settings.profile} needs a key of its own")


def _validate_kafka_security(settings: Settings) -> None:
    """What a protocol needs must be there; what it would not use was meant for another protocol."""
    protocol = settings.kafka_security
    named = ("kafka_username", "kafka_password")
    if protocol.startswith("SASL_"):
        _require(settings, named, f"expected with NEARSTREAM_KAFKA_SECURITY={protocol}")
    else:
        _refuse(settings, named, f"NEARSTREAM_KAFKA_SECURITY={protocol} has no use for it; expected SASL_SSL")
    files = ("kafka_ca_path", "kafka_cert_path", "kafka_key_path", "kafka_key_password")
    if not protocol.endswith("SSL"):
        _refuse(settings, files, f"NEARSTREAM_KAFKA_SECURITY={protocol} has no use for it; expected SSL or SASL_SSL")
    if not settings.kafka_cert_path:
        _refuse(settings, files[2:], "expected with NEARSTREAM_KAFKA_CERT_PATH")


def _validate_redis_security(settings: Settings) -> None:
    # redis-py would take others as orders, not to check certificates among them.
    if parse_qs(urlsplit(settings.redis).query, keep_blank_values=True).keys() - {"username", "password"}:
        raise SettingsError(
            "NEARSTREAM_REDIS: no options but username and password expected; "
            "NEARSTREAM_REDIS_CA_PATH says what is trusted"
        )
    if not settings.redis.startswith("rediss://"):
        _refuse(settings, ("redis_ca_path",), "expected with rediss:// in NEARSTREAM_REDIS")


def _require(settings: Settings, names: Iterable[str], reason: str) -> None:
    for name in names:
        if not getattr(settings, name):
            raise SettingsError(f"{PREFIX}{name.upper()}: {reason}")


def _refuse(settings: Settings, names: Iterable[str], reason: str) -> None:
    for name in names:
        if getattr(settings, name):
            raise SettingsError(f"{PREFIX}{name.upper()}: {reason}")


def _validate_status(settings: Settings) -> None:
    if settings.status_token and len(settings.status_token) < _TOKEN_MIN_CHARACTERS:
        raise SettingsError(f"NEARSTREAM_STATUS_TOKEN: at least {_TOKEN_MIN_CHARACTERS} characters expected")
    on_loopback = settings.status.rsplit(":", 1)[0] in ("off", "localhost", "127.0.0.1")
    if not on_loopback and not settings.status_token:
        raise SettingsError("NEARSTREAM_STATUS_TOKEN: a token expected, as NEARSTREAM_STATUS is not on loopback")
