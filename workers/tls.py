"""TLS: certificates that are checked with their host names, addresses that go without."""

import ssl
from ipaddress import ip_address
from pathlib import Path
from urllib.parse import urlsplit

from workers.settings import PREFIX, Settings, SettingsError


def trusting(variable: str, ca_path: str) -> ssl.SSLContext:
    """A context for clients.

    Args:
        variable: The setting that names the file, for errors.
        ca_path: PEM file of the certificates that servers are checked by; empty: those of the system.

    Raises:
        SettingsError: The file cannot be read or holds no certificate.
    """
    if not ca_path:
        return ssl.create_default_context()
    require_pem(variable, ca_path)
    try:
        return ssl.create_default_context(cafile=ca_path)
    except ssl.SSLError as error:
        raise SettingsError(f"{variable}: certificates expected in {ca_path}: {error}") from None


def require_pem(variable: str, path: str) -> None:
    """Refuses what is no PEM file.

    Raises:
        SettingsError: It cannot be read or is of another form; the variable is named.
    """
    try:
        content = Path(path).read_bytes()
    except OSError as error:
        raise SettingsError(f"{variable}: a readable PEM file expected: {error}") from None
    if b"-----BEGIN " not in content:
        raise SettingsError(f"{variable}: a PEM file expected, {path} is none")


def in_the_clear(settings: Settings) -> list[str]:
    """Variables of the addresses that are other hosts, reached without TLS."""
    found = []
    brokers = [address.rsplit(":", 1)[0] for address in settings.kafka.split(",")]
    if not settings.kafka_security.endswith("SSL") and not all(map(_is_loopback, brokers)):
        found.append(f"{PREFIX}KAFKA")
    redis = urlsplit(settings.redis)
    if redis.scheme != "rediss" and not _is_loopback(redis.hostname or ""):
        found.append(f"{PREFIX}REDIS")
    return found


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
