"""TLS contexts that check certificates and host names.

Also finds the addresses that are reached without TLS.
"""

import ssl
from ipaddress import ip_address
from pathlib import Path

from nearstream.workers.config.settings import PREFIX, Settings, SettingsError, redis_hosts


def trusting(variable: str, ca_path: str) -> ssl.SSLContext:
    """Return a client context that trusts the certificates in the PEM file that a setting names.

    Without a path it trusts those of the system.
    """
    if not ca_path:
        return ssl.create_default_context()
    require_pem(variable, ca_path)
    try:
        return ssl.create_default_context(cafile=ca_path)
    except ssl.SSLError as error:
        raise SettingsError(f"{variable}: expected certificates in {ca_path}: {error}") from None


def require_pem(variable: str, path: str) -> None:
    """Raise SettingsError with the name of a variable unless its file is a PEM file."""
    try:
        content = Path(path).read_bytes()
    except OSError as error:
        raise SettingsError(f"{variable}: expected a readable PEM file: {error}") from None
    if b"-----BEGIN " not in content:
        raise SettingsError(f"{variable}: expected a PEM file, {path} is not one")


def in_the_clear(settings: Settings) -> list[str]:
    """Return the variables whose address is another host reached without TLS."""
    found = []
    brokers = [address.rsplit(":", 1)[0] for address in settings.kafka.split(",")]
    if not settings.kafka_security.endswith("SSL") and not all(map(_is_loopback, brokers)):
        found.append(f"{PREFIX}KAFKA")
    if not settings.redis.startswith("rediss") and not all(map(_is_loopback, redis_hosts(settings.redis))):
        found.append(f"{PREFIX}REDIS")
    return found


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
