"""The rules and targets of `nearstream worker alert`, read from a TOML file."""

import re
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import msgspec

from nearstream.schemas.alerts.alert import ALERT_NAMES
from nearstream.schemas.documents.document import NAME_PATTERN
from nearstream.streams.alerting.counting import Rule
from nearstream.workers.config.settings import SettingsError
from nearstream.workers.config.webhook_targets import WebhookTarget, parse_targets

VARIABLE = "NEARSTREAM_ALERTS"
DEFAULT_RULES = (
    Rule("duplicate_storm", 100, 600),
    Rule("new_family_of_size", 1_000, 86_400),
    Rule("dead_letters", 100, 600),
    Rule("label_flood", 10, 3_600),
)
_HOUR_SECONDS = 3_600
_WEEK_SECONDS = 7 * 86_400
_WEBHOOK = "webhook"
_PUBLIC_URL = "public_url"
_ADDRESS = r"https?://[^\s/?#@]+(/[^\s?#]*)?"


@dataclass(frozen=True)
class AlertSettings:
    """What the file says.

    Attributes:
        rules: The rules, at most one of each name.
        targets: Where alerts are sent by HTTP.
        public_url: Address of the live page in their links. Empty: they have none.
    """

    rules: tuple[Rule, ...]
    targets: tuple[WebhookTarget, ...] = ()
    public_url: str = ""


class _RuleTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A table of the file. Its name is that of the alert."""

    limit: Annotated[int, msgspec.Meta(ge=2, le=10_000)]
    window_seconds: Annotated[int, msgspec.Meta(ge=1, le=_WEEK_SECONDS)]
    collections: tuple[Annotated[str, msgspec.Meta(pattern=NAME_PATTERN)], ...] = ()


def load_alerts(path: str) -> AlertSettings:
    """Read a file with rules and targets.

    Args:
        path: Path of a TOML file with a table for each alert, such as `[duplicate_storm]`, with tables `[[webhook]]`,
            and with `public_url` above them. Alerts without a table are off. If no alert has one, the default rules
            hold. Empty: the default rules, and no targets.

    Raises:
        SettingsError: The file cannot be read, or a table is not valid. The message is one line that names it.
    """
    if not path:
        return AlertSettings(DEFAULT_RULES)
    tables = _tables(path)
    public_url = tables.pop(_PUBLIC_URL, "")
    if public_url and not (isinstance(public_url, str) and re.fullmatch(_ADDRESS, public_url)):
        raise SettingsError(f"{VARIABLE}: {path}: {_PUBLIC_URL}: expected http(s)://host[:port][/path]")
    unknown = sorted(tables.keys() - {*ALERT_NAMES, _WEBHOOK})
    if unknown or not (tables or public_url):
        got = repr(unknown[0][:40]) if unknown else "none"
        raise SettingsError(f"{VARIABLE}: {path}: expected tables {', '.join(ALERT_NAMES)} or {_WEBHOOK}, got {got}")
    try:
        targets = parse_targets(tables.pop(_WEBHOOK, ()))
    except ValueError as error:
        raise SettingsError(f"{VARIABLE}: {path}: [[{_WEBHOOK}]]: {error}") from None
    rules = tuple(_rule(path, name, tables[name]) for name in ALERT_NAMES if name in tables)
    return AlertSettings(rules or DEFAULT_RULES, targets, public_url)


def _rule(path: str, name: str, table: Any) -> Rule:  # noqa: ANN401 - as tomllib reads it
    try:
        checked = msgspec.convert(table, _RuleTable)
    except msgspec.ValidationError as error:
        detail = re.sub(r" matching regex '.*'", " of a collection", str(error)).replace("`$", "`")
        raise SettingsError(f"{VARIABLE}: {path}: [{name}]: {detail}") from None
    if name == "dead_letters" and checked.collections:
        raise SettingsError(f"{VARIABLE}: {path}: [{name}]: collections: dead letters have none")
    if name == "label_flood" and checked.window_seconds != _HOUR_SECONDS:
        raise SettingsError(f"{VARIABLE}: {path}: [{name}]: window_seconds: expected {_HOUR_SECONDS}")
    return Rule(name, checked.limit, checked.window_seconds, frozenset(checked.collections))  # type: ignore[arg-type]


def _tables(path: str) -> dict[str, Any]:
    """Return the content of a TOML file."""
    try:
        return tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise SettingsError(f"{VARIABLE}: {path}: expected a readable file: {error.strerror}") from None
    except UnicodeDecodeError:
        raise SettingsError(f"{VARIABLE}: {path}: expected UTF-8") from None
    except tomllib.TOMLDecodeError as error:
        raise SettingsError(f"{VARIABLE}: {path}: expected TOML: {error}") from None
