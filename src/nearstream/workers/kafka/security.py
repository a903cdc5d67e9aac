"""TLS and SASL for Kafka clients."""

import asyncio
import ssl
from typing import Any

from aiokafka.conn import create_conn

from nearstream.workers.config.settings import PREFIX, Settings, SettingsError
from nearstream.workers.config.tls import require_pem, trusting
from nearstream.workers.kafka.errors import (
    CLOSED_BY_BROKER,
    KafkaError,
    TokenUnavailableError,
    wrong_connection_setting,
)
from nearstream.workers.kafka.tokens import TokenProvider, tell_refused_tokens, token_provider

BEARER = "OAUTHBEARER"


def client_options(settings: Settings) -> dict[str, Any]:
    """Return keyword arguments for every aiokafka client: addresses, TLS and SASL."""
    return {"bootstrap_servers": settings.kafka, **_credentials(settings)}


def tls_context(settings: Settings) -> ssl.SSLContext | None:
    """Return the TLS context of all connections, None without TLS.

    It trusts the configured certificates, checks host names and presents the client certificate.
    """
    if not settings.kafka_security.endswith("SSL"):
        return None
    context = trusting(f"{PREFIX}KAFKA_CA_PATH", settings.kafka_ca_path)
    if settings.kafka_cert_path:
        _load_client_certificate(context, settings)
    return context


def uses_sasl(settings: Settings) -> bool:
    """Return whether clients log in, with a password or with a token."""
    return settings.kafka_security.startswith("SASL_")


def tokens(settings: Settings) -> TokenProvider | None:
    """Return what gives clients their tokens, None without OAUTHBEARER."""
    if not uses_sasl(settings) or settings.kafka_sasl_mechanism != BEARER:
        return None
    tell_refused_tokens()
    return token_provider(settings)


async def why_unconnected(settings: Settings, wait_seconds: float) -> str:
    """Return why no broker can be used.

    aiokafka's clients try one broker after the other, and in the end only report that none could be used.
    """
    reason = "no answer"
    for address in settings.kafka.split(","):
        host, port = address.rsplit(":", 1)
        try:
            async with asyncio.timeout(wait_seconds):
                (await create_conn(host, int(port), **_credentials(settings))).close()
        except TokenUnavailableError as error:
            reason = str(error)
            continue
        except (KafkaError, OSError) as error:  # OSError includes TimeoutError and ssl.SSLError
            wrong = wrong_connection_setting(settings, error)
            if wrong:
                raise SettingsError(f"{wrong} (broker {address})") from None
            if not isinstance(error, CLOSED_BY_BROKER):
                continue
        reason = f"the broker closed the connection, is NEARSTREAM_KAFKA_SECURITY={settings.kafka_security} right?"
    return reason


def _credentials(settings: Settings) -> dict[str, Any]:
    credentials = {"security_protocol": settings.kafka_security, "ssl_context": tls_context(settings)}
    provider = tokens(settings)
    if provider is not None:
        return credentials | {"sasl_mechanism": BEARER, "sasl_oauth_token_provider": provider}
    if uses_sasl(settings):
        credentials |= {
            "sasl_mechanism": settings.kafka_sasl_mechanism,
            "sasl_plain_username": settings.kafka_username,
            "sasl_plain_password": settings.kafka_password,
        }
    return credentials


def _load_client_certificate(context: ssl.SSLContext, settings: Settings) -> None:
    require_pem(f"{PREFIX}KAFKA_CERT_PATH", settings.kafka_cert_path)
    if settings.kafka_key_path:
        require_pem(f"{PREFIX}KAFKA_KEY_PATH", settings.kafka_key_path)
    try:
        # Always pass a password, otherwise OpenSSL prompts for one on the terminal.
        context.load_cert_chain(
            settings.kafka_cert_path, settings.kafka_key_path or None, lambda: settings.kafka_key_password
        )
    except ssl.SSLError:
        raise SettingsError(
            f"{PREFIX}KAFKA_CERT_PATH, {PREFIX}KAFKA_KEY_PATH, {PREFIX}KAFKA_KEY_PASSWORD: "
            "expected a certificate, its private key and the password of that key"
        ) from None
