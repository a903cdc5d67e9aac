"""The rules and targets of `nearstream worker alert`, read from a TOML file."""

import re
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

import msgspec

from nearstream.schemas.alerts.alert import ALERT_NAMES
from nearstream.schemas.documents.document import NAME_PATTERN
from nearstream.streams.alerting.counting import Rule
from nearstream.workers.config.settings import SettingsError

TARGETS = 16

Form = Literal["alertmanager", "slack"]
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
class WebhookTarget:
    """Where alerts are sent."""

    name: str  # its name in the log and in metrics
    url: str = field(repr=False)  # its address, which may hold a secret and is never logged
    form: Form  # how an alert is written: as Alertmanager's webhook writes it, or as a text for Slack


@dataclass(frozen=True)
class AlertSettings:
    """What the file says."""

    rules: tuple[Rule, ...]  # the rules, at most one of each name
    targets: tuple[WebhookTarget, ...] = ()  # where alerts are sent by HTTP
    public_url: str = ""  # Address of the live page in their links. Empty: they have none.


class _RuleTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A table of the file. Its name is that of the alert."""

    limit: Annotated[int, msgspec.Meta(ge=2, le=10_000)]
    window_seconds: Annotated[int, msgspec.Meta(ge=1, le=_WEEK_SECONDS)]
    collections: tuple[Annotated[str, msgspec.Meta(pattern=NAME_PATTERN)], ...] = ()


def load_alerts(path: str) -> AlertSettings:
    """Read a TOML file with a table for each alert, such as `[duplicate_storm]`, and tables `[[webhook]]`.

    `public_url` stands above them. Alerts without a table are off. If no alert has one, the default rules hold. No path
    gives the default rules without targets.
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
    try:
        return tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise SettingsError(f"{VARIABLE}: {path}: expected a readable file: {error.strerror}") from None
    except UnicodeDecodeError:
        raise SettingsError(f"{VARIABLE}: {path}: expected UTF-8") from None
    except tomllib.TOMLDecodeError as error:
        raise SettingsError(f"{VARIABLE}: {path}: expected TOML: {error}") from None


class _TargetTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    name: Annotated[str, msgspec.Meta(pattern=NAME_PATTERN)]
    form: Form
    url: str = ""
    url_path: str = ""


def parse_targets(tables: object) -> tuple[WebhookTarget, ...]:
    """Return the targets of the tables `[[webhook]]`."""
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
    url = (_content(table) if table.url_path else table.url).strip()
    try:
        parts = urlsplit(url)
        is_address = bool(parts.hostname) and parts.port != 0 and "@" not in parts.netloc
    except ValueError:
        is_address = False
    if not is_address or parts.scheme not in ("https", "http") or re.search(r"[\s\x00-\x1f\x7f]", url):
        raise ValueError(f"{table.name}: expected an address https:// or http:// in url or in the file url_path")
    return WebhookTarget(table.name, url, table.form)


def _content(table: _TargetTable) -> str:
    try:
        return Path(table.url_path).read_text(encoding="utf-8")
    except OSError as error:
        raise ValueError(f"{table.name}: url_path: expected a readable file: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ValueError(f"{table.name}: url_path: expected a file in UTF-8") from None
