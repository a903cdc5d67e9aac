"""Every field of every message is shown, documented, checked and kept."""

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec import inspect

from nearstream.schemas.published.json_schema import MESSAGES
from nearstream.schemas.topics.codec import (
    InvalidMessageError,
    decode_document,
    decode_event,
    decode_json,
    decode_signature,
    encode_json,
    encode_signature,
)

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "schemas/examples"
PAGE = (ROOT / "docs/events.md").read_text()
OF_NO_TOPIC_OF_EVENTS = ("decision", "alert", "label", "label_change", "silence")
Path_ = tuple[str, ...]
Json = dict[str, Any]
JSON_MESSAGES = [name for name in MESSAGES if name != "signature"]
MAIL = {"text": "one", "sender_hash": "8c3f0d5be27a9146", "recipient_hashes": ["1b7e90a2c4d65f83"]}
REFERENCE = {
    "collection": "licences",
    "id": "mit",
    "version": "58b0a1d7c2e94f36",
    "observed_at": "2026-03-02T08:00:00Z",
    "relation": "containment",
    "inner": "reference",
    "resemblance": {"value": 0.31, "low": 0.24, "high": 0.39},
    "distance": {"value": 2240, "low": 2105, "high": 2375},
    "characters": 1012,
    "family": "1f6c0e9b7a2d4358bd11c6a07e9f3b24",
}
FURTHER: dict[str, list[Json]] = {
    # The content of a document is in one of three fields.
    "document": [
        {"html": "<p>one"},
        {"raw": "b25l", "content_type": "text/plain"},
        {"text": "one", "lineage": "l-1"},
        MAIL,
        {"text": "one", "against": ["known-good"]},
    ],
    # The published verdict is about a near duplicate of a document without a URL.
    "verdict": [{"inner": "newer", "low_confidence": ["common_text"], "references": [REFERENCE]}],
    # The published decision is about a copy.
    "decision": [{"action": "refresh", "because": "error_page", "error_text": "0" * 32}],
}


def example(name: str) -> Json:
    whole: Json = json.loads((EXAMPLES / f"{name}.json").read_bytes())
    return whole


WHOLE_DOCUMENT: Json = example("version")["newer"]  # with all fields that a document in an event can have


def examples(name: str) -> list[Json]:
    """Return examples of a message, which together show all of its fields."""
    own = example(name)
    if name == "document":
        return [own, *FURTHER[name]]
    whole = {field: WHOLE_DOCUMENT for field in ("newer", "older", "of", "canonical") if field in own}
    if name == "alert":
        whole = {"until": own["since"]}
    if name == "verdict":
        whole |= {**WHOLE_DOCUMENT, "family": {**own["family"], "founder": WHOLE_DOCUMENT}}
    return [own, {**own, **whole}, *({**own, **more} for more in FURTHER.get(name, []))]


def fields(struct: type[msgspec.Struct], path: Path_ = ()) -> Iterator[tuple[Path_, inspect.Type]]:
    """Yield the path and the type of every field of a message, those of its parts included."""
    info = inspect.type_info(struct)
    assert isinstance(info, inspect.StructType)
    for field in info.fields:
        here = (*path, field.encode_name)
        yield here, field.type
        for part in parts(field.type):
            yield from fields(part, here)


def parts(kind: object) -> Iterator[type[msgspec.Struct]]:
    """Yield the structs that a field may hold."""
    if isinstance(kind, inspect.StructType):
        yield kind.cls
    elif isinstance(kind, inspect.UnionType):
        for each in kind.types:
            yield from parts(each)
    elif isinstance(kind, inspect.VarTupleType | inspect.ListType):
        yield from parts(kind.item_type)


def shown(name: str) -> Iterator[tuple[Path_, Json, Json]]:
    """Yield the path of each field of a message, an example that has it, and the part of it that holds the field.

    The example is a copy.
    """
    for path, _ in fields(MESSAGES[name]):
        copies = [(whole, holder(whole, path)) for whole in copy.deepcopy(examples(name))]
        found = [(whole, part) for whole, part in copies if part and part[path[-1]] is not None]
        assert found, f"no example of {name} shows {'.'.join(path)}"
        yield path, *found[0]


def holder(part: Any, path: Path_) -> Json | None:  # noqa: ANN401 - a JSON value
    """Return the object in which the field at a path is, None if an example has none."""
    for name in path[:-1]:
        part = part.get(name) if isinstance(part, dict) else None
        if isinstance(part, list):
            part = part[0] if part else None
    return part if isinstance(part, dict) and path[-1] in part else None


def other(value: Any) -> Any:  # noqa: ANN401 - a JSON value
    """Return another valid value of the same kind."""
    match value:
        case bool():
            return not value
        case int():
            return value + 1
        case float():
            return value / 2 or 0.5
        case [int(), int()]:
            return [value[0] + 1, value[1] + 2]
        case [] | [str(), *_]:
            return [*value, *(value[:1] or ["another"])]
        case list():
            return value[:-1]
        case dict():
            return {"another": next(iter(value.values()), 1.0)}
    return _other_text(value)


def _other_text(value: str) -> str:
    named = {
        "skip": "keep",
        "copy": "unchanged",
        "newer": "older",
        "near_duplicate": "overlap",
        "containment": "overlap",
        "reference": "document",
        "duplicate_storm": "dead_letters",
        "firing": "resolved",
        "spam": "ham",
    }
    if value in named:
        return named[value]
    if value.startswith("2026-"):
        return value.replace("2026", "2027")
    return value[:-1] + ("1" if value.endswith("0") else "0")


@pytest.mark.parametrize("name", JSON_MESSAGES)
def test_every_field_is_refused_with_its_path_if_it_has_another_type(name: str) -> None:
    for path, whole, part in shown(name):
        part[path[-1]] = "x" if isinstance(part[path[-1]], list) else [[None]]
        with pytest.raises(InvalidMessageError) as refused:
            decode(name, whole)
        assert f".{path[-1]}" in refused.value.detail, path


def test_a_pattern_is_described_in_words() -> None:
    with pytest.raises(InvalidMessageError, match=r"Expected 16 or 32 hex digits - at `\$.event_id`"):
        decode("verdict", {**example("verdict"), "event_id": "x" * 32})


@pytest.mark.parametrize("name", JSON_MESSAGES)
def test_another_value_of_every_field_is_read_and_written(name: str) -> None:
    for path, whole, part in shown(name):
        field, before = path[-1], decode(name, whole)
        if isinstance(part[field], dict) and field not in ("labels", "thresholds"):
            continue  # its own fields are walked
        part[field] = other(part[field])
        after = decode(name, whole)
        assert after != before, path
        written = holder(
            json.loads((msgspec.json.encode if name in ("label", "silence") else encode_json)(after)), path
        )
        assert written is not None, path
        assert written[field] == part[field], path


@pytest.mark.parametrize("name", JSON_MESSAGES)
def test_every_field_is_in_the_page_about_events(name: str) -> None:
    for path, _ in fields(MESSAGES[name]):
        assert f"`{path[-1]}`" in PAGE or f'"{path[-1]}"' in PAGE, path


def decode(name: str, whole: Json) -> object:
    written = json.dumps(whole).encode()
    if name in OF_NO_TOPIC_OF_EVENTS:
        return decode_json(MESSAGES[name], written)
    return (decode_document if name == "document" else decode_event)(written)


def test_every_field_of_a_signature_is_read_and_kept() -> None:
    whole = (EXAMPLES / "signature.msgpack").read_bytes()
    values = msgspec.msgpack.decode(whole)
    before = decode_signature(whole)
    for position, field in enumerate(msgspec.structs.fields(MESSAGES["signature"])):
        for wrong in (3.5, [[None]]):
            broken = [*values[:position], wrong, *values[position + 1 :]]
            with pytest.raises(InvalidMessageError) as refused:
                decode_signature(msgspec.msgpack.encode(broken))
            assert f"$[{position}]" in refused.value.detail
        value = values[position]
        if isinstance(value, bytes):
            changed: Any = bytes([value[0] ^ 1, *value[1:]]) if value else b"\x01"
        elif field.name == "origin":
            changed = {**value, "offset": value["offset"] + 1}
        elif field.name == "degraded":
            changed = ["charset_replaced"]
        else:
            changed = other(value)
        after = decode_signature(msgspec.msgpack.encode([*values[:position], changed, *values[position + 1 :]]))
        assert after != before
        assert msgspec.msgpack.decode(encode_signature(after))[position] == changed
