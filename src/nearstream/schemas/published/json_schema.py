"""JSON Schemas of all messages, made from the structs."""

import inspect
import re
import sys
from collections.abc import Container
from functools import cache
from typing import Any

import msgspec

from nearstream.schemas.alerts.alert import Alert, Silence
from nearstream.schemas.documents.document import Document
from nearstream.schemas.documents.signature import Signature
from nearstream.schemas.labels.decision import Decision
from nearstream.schemas.labels.label import Label, LabelChange
from nearstream.schemas.verdicts.events import (
    Containment,
    ExactDuplicate,
    NearDuplicate,
    Overlap,
    Rearranged,
    Retraction,
    Version,
)
from nearstream.schemas.verdicts.verdict import DocumentVerdict

Json = dict[str, Any]  # parts of a schema, each with a form of its own

# The file name of the schema and of the example of each message.
MESSAGES: dict[str, type[msgspec.Struct]] = {
    "document": Document,
    "signature": Signature,
    "verdict": DocumentVerdict,
    "exact_duplicate": ExactDuplicate,
    "near_duplicate": NearDuplicate,
    "containment": Containment,
    "version": Version,
    "rearranged": Rearranged,
    "overlap": Overlap,
    "retraction": Retraction,
    "decision": Decision,
    "alert": Alert,
    "label": Label,
    "label_change": LabelChange,
    "silence": Silence,
}
MAJOR = 1

_CLASS = re.compile(r"^class (\w+).*\n((?:(?:    .*)?\n)*)", re.MULTILINE)
# A field with the lines of comment above, or with the comment behind.
_FIELD = re.compile(r"((?:^    # .*\n)*)^    (\w+): .*?(?:  # (.*))?$", re.MULTILINE)


def json_schemas() -> dict[str, Json]:
    """Return the JSON Schema (2020-12) of each message, by its name."""
    return {name: _schema(name, message) for name, message in MESSAGES.items()}


def components(messages: tuple[type[msgspec.Struct], ...], ref_template: str) -> tuple[list[Json], dict[str, Json]]:
    """Return a reference to the schema of each message, and all schemas by name.

    Every property has a description, which its struct has above the field or behind it.
    """
    references, made = msgspec.json.schema_components(messages, ref_template=ref_template)
    schemas: dict[str, Json] = msgspec.json.decode(msgspec.json.encode(made))  # defaults that are tuples become arrays
    for struct in _structs(schemas):
        _describe(struct, schemas[struct.__name__])
    return list(references), schemas


def _schema(name: str, message: type[msgspec.Struct]) -> Json:
    (reference,), schemas = components((message,), "#/$defs/{name}")
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"urn:nearstream:v{MAJOR}:{name}",
        **reference,
        "$defs": dict(sorted(schemas.items())),
    }


def _structs(names: Container[str]) -> list[type[msgspec.Struct]]:
    found: list[type[msgspec.Struct]] = [msgspec.Struct]
    for each in found:
        found += each.__subclasses__()
    return [each for each in found if each.__name__ in names and each.__module__.startswith("nearstream.schemas.")]


def _describe(struct: type[msgspec.Struct], schema: Json) -> None:
    """Give each property what is written about the field of a struct."""
    described = descriptions(struct)
    schema["description"] = _joined(inspect.cleandoc(struct.__doc__ or ""))
    names = [field.encode_name for field in msgspec.structs.fields(struct)]
    if struct.__struct_config__.array_like:
        fields = dict(zip(names, schema["prefixItems"], strict=True))
    else:
        fields = schema["properties"]
    for name, field in fields.items():
        if name in described:
            field.setdefault("description", described[name])
        if struct.__struct_config__.array_like:
            field["title"] = name


def descriptions(struct: type[msgspec.Struct]) -> dict[str, str]:
    """Return what comments say of each field of a struct and its bases."""
    described: dict[str, str] = {}
    for each in reversed(struct.__mro__):
        for above, name, behind in _FIELD.findall(_bodies(each.__module__).get(each.__name__, "")):
            described[name] = behind or " ".join(line.strip().removeprefix("# ") for line in above.splitlines())
    return described


@cache
def _bodies(module: str) -> dict[str, str]:
    is_ours = module.startswith("nearstream.")
    return dict(_CLASS.findall(inspect.getsource(sys.modules[module]))) if is_ours else {}


def _joined(text: str) -> str:
    """Return a text without the line breaks that its source has within paragraphs."""
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in text.strip().split("\n\n"))
