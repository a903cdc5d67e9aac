"""The names under which a server on loopback may be asked."""

from ipaddress import ip_address

FOREIGN_NAME = "expected localhost or an address in the header Host"


def is_foreign_name(host: str | None) -> bool:
    """Return whether the header Host of a request may name another site.

    Such a site can let its own name lead to a loopback address, and its pages would then read the answers. An address
    is no name, and who sends no header is no browser.
    """
    if host is None:
        return False
    name = host.strip().lower()
    if not name.endswith("]"):
        start, colon, port = name.rpartition(":")
        name = start if colon and (port.isdigit() or not port) else name
    if name == "localhost" or name.endswith(".localhost"):  # which no resolver sends anywhere else (RFC 6761)
        return False
    try:
        ip_address(name.strip("[]"))
    except ValueError:
        return True
    return False
