"""Settings, read from `NEARSTREAM_*` environment variables."""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from nearstream.schemas.verdicts.events import RELATIONS
from nearstream.streams.fingerprints.parameters import DEFAULT_LABEL
from nearstream.workers.config.bounds import PATTERNS, RANGES
from nearstream.workers.config.domains import wrong_domains
from nearstream.workers.config.kafka_security import unfit
from nearstream.workers.config.tokens import wrong_tokens

PREFIX = "NEARSTREAM_"
AUTO = "auto"
_KEY_MIN_BYTES = 32


class SettingsError(Exception):
    """A setting is wrong, or what it names does not fit.

    That may be a server, a topic, a file or an index. The message is one line that names what does not fit.
    """


def _setting(default: object, text: str, *, secret: bool = False, holds_secret: bool = False) -> Any:  # noqa: ANN401
    """Declare a setting, as `dataclasses.field` does: a secret, or an address that may hold one, or neither."""
    return field(default=default, repr=not (secret or holds_secret), metadata={"help": text, "secret": secret})


@dataclass(frozen=True)
class Settings:
    """All settings of a deployment. Values that nobody needs to change are constants in the modules that use them."""

    profile: str = _setting("development", "development, production or mail (sets defaults and refusals)")
    kafka: str = _setting("127.0.0.1:9092", "bootstrap brokers, host:port[,host:port]")
    kafka_security: str = _setting("PLAINTEXT", "security protocol: PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL")
    kafka_sasl_mechanism: str = _setting(
        "SCRAM-SHA-512", "SASL mechanism: PLAIN, SCRAM-SHA-256, SCRAM-SHA-512 or OAUTHBEARER"
    )
    kafka_username: str = _setting("", "SASL user name, or the client id for NEARSTREAM_KAFKA_TOKEN_URL")
    kafka_password: str = _setting("", "SASL password, or the client secret", secret=True)
    kafka_token_path: str = _setting("", "OAUTHBEARER: file with a token, read again for every connection")
    kafka_token_url: str = _setting("", "OAUTHBEARER: https:// address that gives tokens for client credentials (OIDC)")
    kafka_token_form: str = _setting("", "further fields for that address: scope=a+b&audience=c", secret=True)
    kafka_token_extensions: str = _setting("", "SASL extensions sent with a token: name=value, separated by spaces")
    kafka_msk_region: str = _setting("", "OAUTHBEARER: AWS region of an MSK cluster with IAM (extra `msk`)")
    kafka_ca_path: str = _setting("", "PEM file with the CA certificates to trust for brokers (empty: the system's)")
    kafka_cert_path: str = _setting("", "PEM file with the client certificate (empty: none)")
    kafka_key_path: str = _setting("", "PEM file with the client's private key (empty: in the certificate file)")
    kafka_key_password: str = _setting("", "password of the private key", secret=True)
    redis: str = _setting(
        "redis://127.0.0.1:6379/0",
        "address of the index, redis://, redis+cluster:// or redis+sentinel:// (with TLS: rediss)",
        holds_secret=True,
    )
    redis_ca_path: str = _setting("", "PEM file with the CA certificates to trust for rediss:// (empty: the system's)")
    group: str = _setting("nearstream", "Kafka consumer group of the workers")
    namespace: str = _setting("nearstream", "first part of every Redis key, [a-z0-9-]{1,32}")
    topic_prefix: str = _setting("", "prefix of every topic name")
    hash_key: str = _setting("", "secret key of all hashes, at least 32 bytes, shared by all workers", secret=True)
    scheme: str = _setting(DEFAULT_LABEL, "preset: fine, mail, compact or noise")
    relations: str = _setting(
        " ".join(RELATIONS),
        "relations that are sent as events, separated by spaces",
    )
    references: str = _setting("", "collections of references, of which items of 8 to 60 words are found in documents")
    verdicts: str = _setting("all", "verdicts that are sent: all, related (all but unique) or none")
    retention_seconds: int = _setting(2_592_000, "how long a document can be found in the index (0: forever)")
    index_documents: int = _setting(1_000_000, "expected number of live documents (fixed when the index is created)")
    index_slots: int = _setting(1, "slots that the index is spread over (fixed when the index is created)")
    redis_wait: int = _setting(0, "replicas of each Redis server that confirm every decision (0: none is waited for)")
    fields: str = _setting("", "fields of JSON documents of another program, ours=theirs, separated by spaces")
    html_content: str = _setting("main", "what is read of web pages: main, all (with frames), main-links, all-links")
    crawl_freshness: float = _setting(
        0.8, "how fresh `worker decide` keeps pages, from .5 (few fetches) to .99 (few stale hours)"
    )
    mail_content: str = _setting(
        "whole", "what is read of mail: whole, or thread (without quotes and signature, its thread is the lineage)"
    )
    mail_authserv_id: str = _setting(
        "", "mail server whose Authentication-Results say which senders are authenticated (empty: all by From)"
    )
    mail_domains: str = _setting(
        "", "lines `domain collection`, by which recipients of mail have collections in the HTTP API", secret=True
    )
    max_text_bytes: int = _setting(1024 * 1024, "maximum UTF-8 bytes of a text or normal form (larger: dead letter)")
    dead_letter_payload: str = _setting("full", "what a dead letter keeps of the record: full, head (64 KiB) or hash")
    dead_letter_max_ratio: float = _setting(
        0.2,
        "share of dead letters in 1000 records above which a worker halts, as after 100 in a row (0: no limit)",
    )
    outage_seconds: int = _setting(900, "how long a worker waits for Kafka or Redis until it exits (0: forever)")
    stop_seconds: int = _setting(30, "how long a worker may take to stop")
    status: str = _setting(
        AUTO, "host:port of a worker's metrics, health and lag, auto (127.0.0.1:9464, else a free port), or off"
    )
    status_token: str = _setting("", "bearer token that the status server requires (needed off loopback)", secret=True)
    api: str = _setting("127.0.0.1:9465", "host:port of the HTTP API of `nearstream serve`")
    api_token: str = _setting(
        "", "tokens of the HTTP API, one a line: token [collections [rate [bare]]] (needed off loopback)", secret=True
    )
    api_seconds: float = _setting(0.15, "how long the HTTP API takes for an answer at most (clients wait .35 s longer)")
    bulk_count: int = _setting(20, "copies within an hour from which the HTTP API says bulk")
    label_delay_seconds: int = _setting(300, "age from which a label counts in answers of the HTTP API")
    alerts: str = _setting("", "TOML file with rules and webhooks of `nearstream worker alert` (empty: default rules)")
    log_level: str = _setting("", "debug, info, warning, error or critical (empty: info for workers, else warning)")
    log_format: str = _setting("text", "form of the log: text, or json for one JSON object a line")


def load(environment: Mapping[str, str] = os.environ) -> Settings:
    """Read and check the settings of an environment.

    `NEARSTREAM_X_FILE` names a file that contains the value of `NEARSTREAM_X`.
    """
    known = {item.name: item for item in fields(Settings)}
    given: dict[str, Any] = {}
    for variable in sorted(name for name in environment if name.startswith(PREFIX)):
        name = variable.removeprefix(PREFIX).lower()
        text = environment[variable]
        if name.endswith("_file") and name not in known:
            name, text = name.removesuffix("_file"), _from_file(variable, text)
            if variable.removesuffix("_FILE") in environment:
                raise SettingsError(f"{variable}: {variable.removesuffix('_FILE')} is set too, expected only one")
        if name not in known:
            raise SettingsError(f"{variable}: no such setting{_meant(name)}")
        given[name] = _parsed(variable, text, type(known[name].default))
    if given.get("profile") == "mail":
        given.setdefault("dead_letter_payload", "hash")
        given.setdefault("scheme", "mail")
    settings = Settings(**given)
    _validate(settings)
    return settings


def table(settings: Settings) -> list[tuple[str, str, str, str]]:
    """Return rows of variable, value, default and help text.

    There is one for each setting. Secrets in the value are masked.
    """
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
    """Return a value with its secrets masked, for logs."""
    if Settings.__dataclass_fields__[name].metadata["secret"]:
        return "***" if value else ""
    # A password may contain any character, even `@`, and redis-py also accepts one among the options.
    scheme, mark, rest = str(value).partition("://")
    _, at, host = rest.rpartition("@")
    address, options, _ = f"{scheme}{mark}{'***@' if at else ''}{host}".partition("?")
    return f"{address}?***" if options else address


def _meant(name: str) -> str:
    similar = get_close_matches(name, [item.name for item in fields(Settings)], n=1)
    return f", is it {PREFIX}{similar[0].upper()}?" if similar else ", `env -i nearstream settings` lists all"


def _from_file(variable: str, path: str) -> str:
    try:  # Do not print the path: it is the secret itself if the two variables were confused.
        text = Path(path).read_text(encoding="utf-8").rstrip("\r\n")
    except OSError as error:
        raise SettingsError(f"{variable}: expected the path of a readable file: {error.strerror}") from None
    except UnicodeDecodeError:
        raise SettingsError(f"{variable}: expected a file in UTF-8") from None
    lines = [line.strip() for line in text.removeprefix("\ufeff").splitlines()]
    if all(line in ("", "#") or line.startswith("# ") for line in lines):
        raise SettingsError(f"{variable}: expected a file that holds a value, found none, or comments alone")
    return text


def _parsed(variable: str, text: str, kind: type) -> object:
    if any("\ud800" <= char <= "\udfff" for char in text):  # how Python stands for bytes that are not UTF-8
        raise SettingsError(f"{variable}: expected UTF-8")
    try:
        return kind(text.strip())
    except ValueError:
        expected = "a whole number" if kind is int else "a number"
        raise SettingsError(f"{variable}: expected {expected}, got {text[:40]!r}") from None


def _validate(settings: Settings) -> None:
    for name, (low, high) in RANGES.items():
        value = getattr(settings, name)
        if not low <= value <= high:
            raise SettingsError(f"{PREFIX}{name.upper()}: expected {low} to {high}, got {value}")
    for name, (pattern, expected) in PATTERNS.items():
        if not re.fullmatch(pattern, getattr(settings, name)):  # do not print a value, which may hold a password
            raise SettingsError(f"{PREFIX}{name.upper()}: expected {expected}")
    security = (_validate_key, _validate_kafka_security, _validate_redis_security, _validate_tokens)
    for validate in (*security, _validate_hosts, _validate_relations):
        validate(settings)


def redis_hosts(address: str) -> list[str]:
    """Return the hosts in an address of Redis, several if it is one of sentinels."""
    return [place.rpartition(":")[0] for place in urlsplit(address).netloc.rpartition("@")[2].split(",")]


def _validate_hosts(settings: Settings) -> None:
    """Raise if the name of a host is invalid, for which the clients have no error."""
    hosts = [("kafka", address.rsplit(":", 1)[0]) for address in settings.kafka.split(",")]
    hosts += [("redis", host) for host in redis_hosts(settings.redis)]
    hosts += [(name, getattr(settings, name).rsplit(":", 1)[0]) for name in ("status", "api")]
    for name, host in hosts:
        try:
            host.encode("idna")
        except UnicodeError:
            raise SettingsError(f"{PREFIX}{name.upper()}: expected the name of a host") from None


def _validate_relations(settings: Settings) -> None:
    named = settings.relations.split()
    unknown = sorted(set(named) - set(RELATIONS))
    if unknown or not named:
        got = repr(unknown[0]) if unknown else "none"
        raise SettingsError(f"NEARSTREAM_RELATIONS: expected some of {', '.join(RELATIONS)}, got {got}")


def _validate_key(settings: Settings) -> None:
    if settings.hash_key and len(settings.hash_key.encode()) < _KEY_MIN_BYTES:
        raise SettingsError(f"NEARSTREAM_HASH_KEY: expected at least {_KEY_MIN_BYTES} bytes")
    if settings.profile != "development" and not settings.hash_key:
        raise SettingsError(f"NEARSTREAM_HASH_KEY: the profile {settings.profile} requires a secret key")
    if settings.scheme == "mail" and not settings.hash_key:
        raise SettingsError("NEARSTREAM_HASH_KEY: NEARSTREAM_SCHEME=mail requires a secret key")


def _validate_kafka_security(settings: Settings) -> None:
    if wrong := unfit(vars(settings)):
        name, reason = wrong
        raise SettingsError(f"{PREFIX}{name.upper()}: {reason}")


def _validate_redis_security(settings: Settings) -> None:
    try:
        options = parse_qs(urlsplit(settings.redis).query, keep_blank_values=True)
    except ValueError:  # its text quotes the password
        raise SettingsError(
            "NEARSTREAM_REDIS: expected characters that Unicode maps to / ? # @ or : to be percent-encoded"
        ) from None
    # redis-py obeys other options, among them those that turn off the check of certificates.
    if options.keys() - {"username", "password"}:
        raise SettingsError(
            "NEARSTREAM_REDIS: expected no options but username and password, "
            "set NEARSTREAM_REDIS_CA_PATH to choose the trusted certificates"
        )
    if settings.redis_ca_path and not settings.redis.startswith("rediss"):
        raise SettingsError("NEARSTREAM_REDIS_CA_PATH: requires rediss:// in NEARSTREAM_REDIS")


def _validate_tokens(settings: Settings) -> None:
    """Raise if a token is too short, or missing for an address that is not on loopback."""
    if expected := wrong_domains(settings.mail_domains):
        raise SettingsError(f"NEARSTREAM_MAIL_DOMAINS: {expected}")
    for name in ("status", "api"):
        token, variable = getattr(settings, f"{name}_token"), f"{PREFIX}{name.upper()}"
        if expected := wrong_tokens(token):
            raise SettingsError(f"{variable}_TOKEN: {expected}")
        host = getattr(settings, name).rsplit(":", 1)[0]
        if not token and host not in ("off", AUTO, "localhost", "127.0.0.1"):
            raise SettingsError(f"{variable}_TOKEN: expected a token, because {variable} is not on loopback")


def own_group(settings: Settings, role: str) -> Settings:
    """Return the settings with the consumer group of a role.

    Both `decide` and `alert` read all verdicts, so they cannot share a group.
    """
    return replace(settings, group=f"{settings.group}.alert") if role == "alert" else settings
