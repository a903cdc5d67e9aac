"""Read the JSON of other programs by a map from our field names to theirs."""

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import msgspec

from nearstream.schemas.documents.document import Document, from_milliseconds

_LABEL = "labels."
_NAMES = frozenset(Document.__struct_fields__) - {
    "labels",
    "recipient_hashes",
    "against",
}  # objects and lists are not mapped
_CONTENTS = frozenset({"text", "html", "raw"})
_ENTRY = re.compile(r"(labels\.[a-z0-9][a-z0-9-]{0,30}|[a-z_]{1,20})=([^\s=]{1,200}?)(?::(epoch_s|epoch_ms))?")
_MILLISECONDS = {"epoch_s": 1000, "epoch_ms": 1}
_NUMBER_MAX_BYTES = 64
_WHOLE = re.compile(rb"-?[0-9]{1,32}")  # a usual key of databases
# The row after a change and before it, in a change event of Debezium.
_AFTER, _BEFORE = "after.", "before."
_UTF8_BOM = b"\xef\xbb\xbf"

Json = object  # any value


@dataclass(frozen=True)
class MappedField:
    """A field of ours, and where the JSON of another program has it."""

    name: str  # the field of a document, or `labels.<name>`
    path: str  # Names of objects in objects and of the field, joined by dots. Names may contain dots themselves.
    # A time is a number of seconds or milliseconds since 1970. Empty: the value is taken as it is.
    unit: Literal["", "epoch_s", "epoch_ms"] = ""


FieldMap = tuple[MappedField, ...]


def parse_field_map(text: str) -> FieldMap:
    """Parse a map such as `text=content observed_at=meta.fetched:epoch_ms`. An empty text is an empty map."""
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
        theirs = _members(value.removeprefix(_UTF8_BOM), _names(*(field.path for field in fields)))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return value
    ours: dict[str, Json] = {}
    labels: dict[str, Json] = {}
    for field in fields:
        found = _only(_at(theirs, field.path))
        if found in (b"", b"null"):
            continue
        if field.name in ("id", "lineage") and _WHOLE.fullmatch(found):
            found = b'"%b"' % found
        if field.name.startswith(_LABEL):
            labels[field.name.removeprefix(_LABEL)] = msgspec.Raw(found)
        else:
            ours[field.name] = _time(found, _MILLISECONDS[field.unit]) if field.unit else msgspec.Raw(found)
    return msgspec.json.encode(ours | {"labels": labels} if labels else ours)


def deleted_row(value: bytes, fields: FieldMap) -> bytes | None:
    """Return JSON with the id and the collection of a deleted row, None if the record is no deletion.

    A change event of Debezium has `null` for the row after a deletion, and the key of the row in `before`.
    """
    paths = {field.name: field.path for field in fields}
    content = next(paths[name] for name in _CONTENTS if name in paths)
    row = content.rpartition(_AFTER)[0] + _AFTER[:-1]
    if not f".{content}".startswith(f".{row}.") or not f".{row}".endswith(f".{_AFTER[:-1]}"):
        return None
    try:
        event = _members(value.removeprefix(_UTF8_BOM), _names(row))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    if _at(event, row) != b"null":
        return None
    before = row.removesuffix(_AFTER[:-1]) + _BEFORE
    named = tuple(
        MappedField(name, before + paths[name].removeprefix(row + "."))
        for name in ("id", "collection")
        if paths.get(name, "").startswith(row + ".")
    )
    return with_our_names(value, named)


def _names(*paths: str) -> frozenset[str]:
    return frozenset(name for path in paths for name in (path, path.partition(".")[0]))


def _members(value: bytes, names: frozenset[str]) -> dict[str, bytes]:
    """Return the JSON of the named members of an object.

    No others become objects of Python, because millions of them would hold the interpreter for seconds.
    """
    decoder, ordered = _decoder(names)
    found = msgspec.structs.astuple(decoder.decode(value))
    return {name: raw for name, each in zip(ordered, found, strict=True) if (raw := bytes(each))}


@lru_cache(maxsize=256)
def _decoder(names: frozenset[str]) -> tuple[msgspec.json.Decoder[msgspec.Struct], tuple[str, ...]]:
    ordered = tuple(sorted(names))
    members = [(f"member_{number}", msgspec.Raw, msgspec.Raw()) for number in range(len(ordered))]
    renamed = {member[0]: name for member, name in zip(members, ordered, strict=True)}
    return msgspec.json.Decoder(msgspec.defstruct("Members", members, rename=renamed)), ordered


def _at(members: dict[str, bytes], path: str) -> bytes:
    while path not in members:
        name, _, path = path.partition(".")
        if not path or name not in members:
            return b""
        try:
            members = _members(members[name], _names(path))
        except msgspec.DecodeError:
            return b""
    return members[path]


def _only(value: bytes) -> bytes:
    """Return the JSON of the only value in a list, and any other value as it is."""
    try:
        return bytes(msgspec.json.decode(value, type=tuple[msgspec.Raw])[0]) if value.startswith(b"[") else value
    except msgspec.DecodeError:
        return value


def _time(value: bytes, milliseconds: int) -> Json:
    """Return a time for a number, and any other value as it is, which is then refused."""
    number = msgspec.json.decode(value) if len(value) <= _NUMBER_MAX_BYTES else None
    if isinstance(number, bool) or not isinstance(number, int | float | str):
        return msgspec.Raw(value)
    try:
        return from_milliseconds(round(float(number) * milliseconds))
    except (OverflowError, ValueError):
        return msgspec.Raw(value)
