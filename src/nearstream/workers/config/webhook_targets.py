"""Where alerts are sent by HTTP, from the tables `[[webhook]]` of the file of alert rules."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal
from urllib.parse import urlsplit

import msgspec

from nearstream.schemas.documents.document import NAME_PATTERN

TARGETS = 16
_SECRET_MIN_BYTES = 16

Form = Literal["alertmanager", "slack"]


@dataclass(frozen=True)
class WebhookTarget:
    """Where alerts are sent.

    Attributes:
        name: Its name in the log and in metrics.
        url: Its address, which may hold a secret and is never logged.
        form: How an alert is written: as Alertmanager's webhook writes it, or as a text for Slack.
        secret: Key of the signature. Empty: requests are not signed.
        may_be_private: Whether the address may be private, on loopback or link-local, and without TLS.
    """

    name: str
    url: str = field(repr=False)
    form: Form
    secret: bytes = field(default=b"", repr=False)
    may_be_private: bool = False


class _TargetTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A table of the file."""

    name: Annotated[str, msgspec.Meta(pattern=NAME_PATTERN)]
    form: Form
    url: str = ""
    url_path: str = ""
    secret_path: str = ""
    may_be_private: bool = False


def parse_targets(tables: object) -> tuple[WebhookTarget, ...]:
    """Return the targets of the tables `[[webhook]]`.

    Raises:
        ValueError: A table is not valid. The message names it, and never quotes an address or a secret.
    """
    try:
        checked = msgspec.convert(tables, tuple[_TargetTable, ...])
    except msgspec.ValidationError as error:
        raise ValueError(re.sub(r" matching regex '.*'", " of a name", str(error)).replace("`$", "`webhook")) from None
    _require_names(checked)
    return tuple(map(_target, checked))


def _require_names(tables: Iterable[_TargetTable]) -> None:
    names = [table.name for table in tables]
    if len(names) > TARGETS or len(set(names)) < len(names):
        raise ValueError(f"expected at most {TARGETS} webhooks, each with a name of its own")


def _target(table: _TargetTable) -> WebhookTarget:
    url = (_content(table, "url_path") if table.url_path else table.url).strip()
    try:
        parts = urlsplit(url)
        is_address = bool(parts.hostname) and parts.port != 0 and "@" not in parts.netloc
    except ValueError:
        is_address = False
    schemes = ("https", "http") if table.may_be_private else ("https",)
    if not is_address or parts.scheme not in schemes or re.search(r"[\s\x00-\x1f\x7f]", url):
        raise ValueError(f"{table.name}: expected an address {' or '.join(schemes)}:// in url or in the file url_path")
    secret = _content(table, "secret_path").strip().encode() if table.secret_path else b""
    if table.secret_path and len(secret) < _SECRET_MIN_BYTES:
        raise ValueError(f"{table.name}: expected at least {_SECRET_MIN_BYTES} bytes in the file secret_path")
    return WebhookTarget(table.name, url, table.form, secret, table.may_be_private)


def _content(table: _TargetTable, name: str) -> str:
    try:
        return Path(getattr(table, name)).read_text(encoding="utf-8")
    except OSError as error:
        raise ValueError(f"{table.name}: {name}: expected a readable file: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ValueError(f"{table.name}: {name}: expected a file in UTF-8") from None
