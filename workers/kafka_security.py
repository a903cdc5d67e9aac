"""How our clients prove themselves to Kafka's brokers, which prove themselves to us."""

import asyncio
import ssl
from typing import Any

from aiokafka.conn import create_conn
from aiokafka.errors import (
    AuthenticationFailedError,
    IllegalSaslStateError,
    KafkaConnectionError,
    KafkaError,
    SaslAuthenticationFailed,
    UnsupportedSaslMechanismError,
)

from workers.settings import PREFIX, Settings, SettingsError
from workers.tls import require_pem, trusting

_CUT_OFF = (KafkaConnectionError, ConnectionResetError, ssl.SSLEOFError, ssl.SSLZeroReturnError)


def client_options(settings: Settings) -> dict[str, Any]:
    """Keyword arguments that every client of aiokafka takes: where the brokers are, how both sides prove themselves.

    Raises:
        SettingsError: A file is not what its setting says; it is named.
    """
    return {"bootstrap_servers": settings.kafka, **_proofs(settings)}


def tls_context(settings: Settings) -> ssl.SSLContext | None:
    """What connections trust and show, host names checked; None for a protocol without TLS.

    Raises:
        SettingsError: A file is not what its setting says; it is named.
    """
    if not settings.kafka_security.endswith("SSL"):
        return None
    context = trusting(f"{PREFIX}KAFKA_CA_PATH", settings.kafka_ca_path)
    if settings.kafka_cert_path:
        _show_certificate(context, settings)
    return context


def uses_sasl(settings: Settings) -> bool:
    """Whether we give a name with a password."""
    return settings.kafka_security.startswith("SASL_")


async def why_unconnected(settings: Settings, wait_seconds: float) -> str:
    """Why no broker can be used: clients of aiokafka try the next one, and in the end say only that there was none.

    Raises:
        SettingsError: A broker does not accept us, or we do not accept it; the setting is named.
    """
    reason = "no answer"
    for address in settings.kafka.split(","):
        host, port = address.rsplit(":", 1)
        try:
            async with asyncio.timeout(wait_seconds):
                (await create_conn(host, int(port), **_proofs(settings))).close()
        except (KafkaError, OSError) as error:  # TimeoutError and ssl.SSLError are of the latter kind
            refusal = _refusal(settings, error)
            if refusal:
                raise SettingsError(f"{refusal} (broker {address})") from None
            if not isinstance(error, _CUT_OFF):
                continue
        reason = f"the broker ends the connection; is NEARSTREAM_KAFKA_SECURITY={settings.kafka_security} right?"
    return reason


def _refusal(settings: Settings, error: Exception) -> str:
    """The setting that is wrong, with the reason; empty if waiting may help."""
    match error:
        case ssl.SSLCertVerificationError():
            return f"{PREFIX}KAFKA_CA_PATH: the broker's certificate is not accepted: {error.verify_message}"
        case ssl.SSLError() if not isinstance(error, _CUT_OFF):
            return f"{PREFIX}KAFKA_SECURITY: no {settings.kafka_security} with the broker: {error.reason}"
        case SaslAuthenticationFailed() | AuthenticationFailedError():
            return f"{PREFIX}KAFKA_USERNAME, {PREFIX}KAFKA_PASSWORD: refused by the broker"
        case UnsupportedSaslMechanismError():
            return f"{PREFIX}KAFKA_SASL_MECHANISM: {settings.kafka_sasl_mechanism} is refused by the broker"
        case IllegalSaslStateError():
            return f"{PREFIX}KAFKA_SECURITY: the broker does not expect {settings.kafka_security}"
        case _:
            return ""


def _proofs(settings: Settings) -> dict[str, Any]:
    proofs = {"security_protocol": settings.kafka_security, "ssl_context": tls_context(settings)}
    if uses_sasl(settings):
        proofs |= {
            "sasl_mechanism": settings.kafka_sasl_mechanism,
            "sasl_plain_username": settings.kafka_username,
            "sasl_plain_password": settings.kafka_password,
        }
    return proofs


def _show_certificate(context: ssl.SSLContext, settings: Settings) -> None:
    require_pem(f"{PREFIX}KAFKA_CERT_PATH", settings.kafka_cert_path)
    if settings.kafka_key_path:
        require_pem(f"{PREFIX}KAFKA_KEY_PATH", settings.kafka_key_path)
    try:
        # Without a password given OpenSSL would ask the terminal for one.
        context.load_cert_chain(
            settings.kafka_cert_path, settings.kafka_key_path or None, lambda: settings.kafka_key_password
        )
    except ssl.SSLError:
        raise SettingsError(
            f"{PREFIX}KAFKA_CERT_PATH, {PREFIX}KAFKA_KEY_PATH, {PREFIX}KAFKA_KEY_PASSWORD: "
            "a certificate expected with the private key that fits it, and the password of that key"
        ) from None
