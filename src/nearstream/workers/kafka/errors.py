"""The errors of Kafka and what each of them means for us.

- Retriable: waiting may help. Callers retry, and in the end raise `KafkaUnreachableError`.
- Refused: a topic or a permission is missing, or a clock is wrong, and waiting does not help. This is a
  `SettingsError`.
- Wrong connection settings: TLS or SASL fails because of a setting, so this is a `SettingsError` too.
- Anything else is a bug and is raised as it is.
"""

import ssl
from collections.abc import Iterable

from aiokafka.errors import (
    AuthenticationFailedError,
    ClusterAuthorizationFailedError,
    GroupAuthorizationFailedError,
    IllegalSaslStateError,
    InvalidTimestampError,
    InvalidTopicError,
    KafkaConnectionError,
    KafkaTimeoutError,
    SaslAuthenticationFailed,
    TopicAuthorizationFailedError,
    UnknownTopicOrPartitionError,
    UnsupportedSaslMechanismError,
)
from aiokafka.errors import (
    KafkaError as KafkaError,  # exported for wings that must not import aiokafka
)

from nearstream.workers.config.settings import PREFIX, Settings, SettingsError

# What each refusal of a broker means for the topic or the group that was used.
_REFUSALS = {
    TopicAuthorizationFailedError: "topic {name}: permission {operation} is missing",
    UnknownTopicOrPartitionError: "topic {name} does not exist: run `nearstream topics create`",
    ClusterAuthorizationFailedError: "permission WRITE on a topic, or IDEMPOTENT_WRITE on the cluster, is missing",
    GroupAuthorizationFailedError: "group {name}: permission {operation} is missing",
    InvalidTopicError: "topic {name}: no topic can have this name",
    InvalidTimestampError: "topic {name}: the broker refuses a record's time, which is too far from its own: set the "
    "clock of this machine by NTP, and what `nearstream topics check` names by Kafka's own tools",
}
# A broker that expects TLS closes a connection without it, and the other way round.
CLOSED_BY_BROKER = (KafkaConnectionError, ConnectionResetError, ssl.SSLEOFError, ssl.SSLZeroReturnError)


class KafkaUnreachableError(Exception):
    """No broker answers. The message is one line that says which address and why."""


class TokenUnavailableError(KafkaConnectionError):  # type: ignore[misc] # aiokafka has no types
    """What gives tokens for a log-in does not answer, so waiting may help."""


class TokenRefusedError(AuthenticationFailedError):  # type: ignore[misc] # aiokafka has no types
    """There is no token for a log-in, and a setting or a file can remedy that."""


def retriable(error: BaseException) -> bool:
    """Return whether waiting may help: no leader, too few replicas, timeout, connection."""
    if not isinstance(error, KafkaError) or refused(error):
        return False
    return bool(error.retriable) or isinstance(error, KafkaConnectionError | KafkaTimeoutError)


def refused(error: BaseException) -> bool:
    """Return whether a topic or a permission is missing, or a clock wrong, which only the operator can change."""
    return isinstance(error, tuple(_REFUSALS))


def settings_error_of(error: BaseException, name: str, operation: str) -> SettingsError:
    """Return the settings error for a refusal, with its topic or group and its operation."""
    text = next(text for kind, text in _REFUSALS.items() if isinstance(error, kind))
    return SettingsError(text.format(name=name, operation=operation))


def refusal_of_reading(error: BaseException) -> SettingsError:
    """Return the settings error of a consumer whose group or topic the broker refuses."""
    said = error.args[0] if error.args else ""
    return settings_error_of(error, said if isinstance(said, str) else ", ".join(sorted(said)), "READ")


def missing_topic_error(topic: str) -> SettingsError:
    """Return the settings error for a topic that does not exist."""
    return SettingsError(_REFUSALS[UnknownTopicOrPartitionError].format(name=topic))


def first_failure(results: Iterable[object], topics: Iterable[str]) -> BaseException | None:
    """Return the first error among the results of sending.

    None means that all records were delivered. A refusal becomes a settings error. A topic that existed at the start
    and is unknown now is treated as an outage, because the metadata of a broker may lag behind.
    """
    for result, topic in zip(results, topics, strict=True):
        if isinstance(result, UnknownTopicOrPartitionError):
            return KafkaUnreachableError(f"topic {topic} is not in the metadata of the broker")
        if isinstance(result, BaseException):
            return settings_error_of(result, topic, "WRITE") if refused(result) else result
    return None


def wrong_connection_setting(settings: Settings, error: Exception) -> str:
    """Return which setting makes a connection fail, and why, an empty text if waiting may help."""
    match error:
        case ssl.SSLCertVerificationError():
            return f"{PREFIX}KAFKA_CA_PATH: the broker's certificate is not accepted: {error.verify_message}"
        case ssl.SSLError() if not isinstance(error, CLOSED_BY_BROKER):
            return f"{PREFIX}KAFKA_SECURITY: {settings.kafka_security} with the broker failed: {error.reason}"
        case TokenRefusedError():
            return str(error.args[0])
        case SaslAuthenticationFailed() | AuthenticationFailedError() if settings.kafka_sasl_mechanism == "OAUTHBEARER":
            return f"{PREFIX}KAFKA_SASL_MECHANISM: the broker refuses the token: {error.args[0]}"
        case SaslAuthenticationFailed() | AuthenticationFailedError():
            return f"{PREFIX}KAFKA_USERNAME, {PREFIX}KAFKA_PASSWORD: refused by the broker"
        case UnsupportedSaslMechanismError():
            return f"{PREFIX}KAFKA_SASL_MECHANISM: {settings.kafka_sasl_mechanism} is refused by the broker"
        case IllegalSaslStateError():
            return f"{PREFIX}KAFKA_SECURITY: the broker does not expect {settings.kafka_security}"
        case _:
            return ""
