"""Read the JSON of other programs by a map from our field names to theirs."""

import re
from dataclasses import dataclass
from typing import Literal

import msgspec

from nearstream.schemas.document import Document, from_milliseconds

_LABEL = "labels."
_NAMES = frozenset(Document.__struct_fields__) - {"labels", "recipient_hashes"}  # objects and lists are not mapped
_CONTENTS = frozenset({"text", "html", "raw"})
_ENTRY = re.compile(r"(labels\.[a-z0-9][a-z0-9-]{0,30}|[a-z_]{1,20})=([^\s=]{1,200}?)(?::(epoch_s|epoch_ms))?")
_MILLISECONDS = {"epoch_s": 1000, "epoch_ms": 1}
_UTF8_BOM = b"\xef\xbb\xbf"

Json = object  # any value


@dataclass(frozen=True)
class MappedField:
    """A field of ours, and where the JSON of another program has it.

    Attributes:
        name: The field of a document, or `labels.<name>`.
        path: Names of objects in objects and of the field, joined by dots. Names may contain dots themselves.
        unit: A time is a number of seconds or milliseconds since 1970. Empty: the value is taken as it is.
    """

    name: str
    path: str
    unit: Literal["", "epoch_s", "epoch_ms"] = ""


FieldMap = tuple[MappedField, ...]


def parse_field_map(text: str) -> FieldMap:
    """Parse a map such as `text=content observed_at=meta.fetched:epoch_ms`. An empty text is an empty map.

    Raises:
        ValueError: The text is no map, or names no content.
    """
    entries = [_ENTRY.fullmatch(entry) for entry in text.split()]
    fields = tuple(MappedField(entry[1], entry[2], entry[3] or "") for entry in entries if entry)  # type: ignore[arg-type]
    names = [field.name for field in fields]
    unknown = sorted(name for name in names if name not in _NAMES and not name.startswith(_LABEL))
    if unknown:
        raise ValueError(f"expected fields of a document, got {unknown[0]}")
    if len(fields) < len(entries):
        raise ValueError("expected ours=theirs, separated by spaces, with :epoch_s or :epoch_ms after a time")
    if len(set(names)) < len(names):
        raise ValueError("expected each field once")
    if any(field.unit and field.name != "observed_at" for field in fields):
        raise ValueError("expected :epoch_s and :epoch_ms only with observed_at")
    if fields and not _CONTENTS.intersection(names):
        raise ValueError("expected one of text, html and raw")
    return fields


def with_our_names(value: bytes, fields: FieldMap) -> bytes:
    """Return JSON with our names of the fields, without those that the map does not name.

    Some crawlers send all values in lists, so a list of one value is taken as the value. A field that is missing or
    null is left out. What is no JSON object is returned as it is, for the decoder to refuse it.
    """
    try:
        theirs = msgspec.json.decode(value.removeprefix(_UTF8_BOM))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return value
    if not isinstance(theirs, dict):
        return value
    ours: dict[str, Json] = {}
    labels: dict[str, Json] = {}
    for field in fields:
        found = _only(_at(theirs, field.path))
        if found is None:
            continue
        if field.name.startswith(_LABEL):
            labels[field.name.removeprefix(_LABEL)] = found
        else:
            ours[field.name] = _time(found, _MILLISECONDS[field.unit]) if field.unit else found
    return msgspec.json.encode(ours | {"labels": labels} if labels else ours)


def _at(tree: Json, path: str) -> Json:
    """Return the value at a path, None if there is none."""
    while isinstance(tree, dict) and path not in tree:
        name, dot, path = path.partition(".")
        if not dot:
            return None
        tree = tree.get(name)
    return tree[path] if isinstance(tree, dict) else None


def _only(value: Json) -> Json:
    return value[0] if isinstance(value, list) and len(value) == 1 else value


def _time(value: Json, milliseconds: int) -> Json:
    """Return a time for a number, and any other value as it is, which is then refused."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return value
    try:
        return from_milliseconds(round(float(value) * milliseconds))
    except (OverflowError, ValueError):
        return value
