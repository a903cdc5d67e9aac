"""Which settings of Kafka's security fit each other."""

from collections.abc import Mapping
from typing import Any

_PASSWORD = ("kafka_username", "kafka_password")
_TOKEN_SOURCES = ("kafka_token_path", "kafka_token_url", "kafka_msk_region")
_CERTIFICATES = ("kafka_ca_path", "kafka_cert_path", "kafka_key_path", "kafka_key_password")


def unfit(given: Mapping[str, Any]) -> tuple[str, str] | None:
    """Return a setting that is missing or would not be used, and why.

    A setting that would not be used was meant for another protocol. None means that all fit.
    """
    for names, reason in _useless(given):
        if wrong := next((name for name in names if given[name]), None):
            return wrong, reason
    if not given["kafka_security"].startswith("SASL_"):
        return None
    return _missing(given)


def _useless(given: Mapping[str, Any]) -> list[tuple[tuple[str, ...], str]]:
    protocol, mechanism = given["kafka_security"], given["kafka_sasl_mechanism"]
    does_not = f"NEARSTREAM_KAFKA_SECURITY={protocol} does not use it, expected"
    tokens = (*_TOKEN_SOURCES, "kafka_token_form", "kafka_token_extensions")
    found: list[tuple[tuple[str, ...], str]] = []
    if not protocol.startswith("SASL_"):
        found.append(((*_PASSWORD, *tokens), f"{does_not} SASL_SSL"))
    elif mechanism != "OAUTHBEARER":
        found.append((tokens, f"NEARSTREAM_KAFKA_SASL_MECHANISM={mechanism} does not use it, expected OAUTHBEARER"))
    elif not given["kafka_token_url"]:
        found.append(((*_PASSWORD, "kafka_token_form"), "requires NEARSTREAM_KAFKA_TOKEN_URL"))
    if not protocol.endswith("SSL"):
        found.append((_CERTIFICATES, f"{does_not} SSL or SASL_SSL"))
    if not given["kafka_cert_path"]:
        found.append((_CERTIFICATES[2:], "requires NEARSTREAM_KAFKA_CERT_PATH"))
    return found


def _missing(given: Mapping[str, Any]) -> tuple[str, str] | None:
    if given["kafka_sasl_mechanism"] != "OAUTHBEARER":
        needed, because = _PASSWORD, f"NEARSTREAM_KAFKA_SECURITY={given['kafka_security']} requires it"
        return next(((name, because) for name in needed if not given[name]), None)
    sources = [name for name in _TOKEN_SOURCES if given[name]]
    if len(sources) != 1:
        others = "NEARSTREAM_KAFKA_TOKEN_PATH, NEARSTREAM_KAFKA_TOKEN_URL or NEARSTREAM_KAFKA_MSK_REGION"
        return "kafka_sasl_mechanism", f"OAUTHBEARER requires one of {others}"
    if not given["kafka_token_url"]:
        return None
    return next(((name, "NEARSTREAM_KAFKA_TOKEN_URL requires it") for name in _PASSWORD if not given[name]), None)
