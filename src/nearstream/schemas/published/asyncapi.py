"""The AsyncAPI 3.0 document: topics, keys, headers and messages."""

from typing import Any

from nearstream.schemas.documents.record import PAGE_DECLARED_HEADER, PAGE_PARTS_HEADER, PAGE_PAYLOAD_HEADER
from nearstream.schemas.published.json_schema import MESSAGES, components
from nearstream.schemas.topics import table as topics
from nearstream.schemas.topics.codec import ORIGIN_HEADER
from nearstream.schemas.topics.dead_letter import (
    BYTES_HEADER,
    DETAIL_HEADER,
    FROM_HEADER,
    ID_HEADER,
    OFFSET_HEADER,
    PARTITION_HEADER,
    PAYLOAD_HEADER,
    PRIVATE_HEADER,
    REASON_HEADER,
    REPLAYS_HEADER,
    SHA256_HEADER,
    STAGE_HEADER,
    TIMESTAMP_HEADER,
    TOPIC_HEADER,
    WORKER_HEADER,
)
from nearstream.schemas.topics.table import Topic
from nearstream.schemas.verdicts.events import RELATIONS

Json = dict[str, Any]  # parts of AsyncAPI, each with a form of its own

_EVENTS = ("verdict", *RELATIONS, "retraction")
_RAW = {"plain_text": "text/plain", "html_page": "text/html"}
# The messages of each value in the table of topics.
_MESSAGES_OF = {message.__name__: (name,) for name, message in MESSAGES.items()} | {
    "raw bytes": tuple(_RAW),
    "null (removal)": ("removal",),
    "null (the lineage was removed)": ("removal",),
    "null (it was taken back)": ("removal",),
    "the original bytes": ("dead_letter",),
}
# What each role of the workers receives and sends, besides dead letters.
_OPERATIONS = {
    "sign": ((topics.DOCUMENTS,), (topics.SIGNATURES,)),
    # Of signatures `match` sends removals only.
    "match": ((topics.SIGNATURES,), (topics.SIGNATURES, *topics.EVENT_TOPICS, topics.LABELS_CHANGED)),
    "decide": ((topics.VERDICTS,), (topics.DECISIONS,)),
    "alert": ((topics.VERDICTS, topics.DEAD_LETTERS, topics.SILENCES, topics.ALERTS), (topics.ALERTS,)),
}

_TEXT: Json = {"type": "string"}
_TRACE = {"traceparent": "W3C trace of the document, at most 128 bytes."}
_CONTENT_TYPE = {"content-type": "Media type of the value."}
_PARTS = {
    PAGE_PARTS_HEADER: "Hashes of the parts of a web page, 9 bytes each, for `nearstream worker decide`.",
    PAGE_DECLARED_HEADER: "Canonical form of the URL that a web page declares by `rel=canonical`.",
    PAGE_PAYLOAD_HEADER: "SHA-1 of the page as the server sent it, in base32, and the id of its WARC record.",
}
_EVENT_HEADERS = {
    "ce_specversion": "`1.0`",
    "ce_id": "The event id.",
    "ce_source": "`/nearstream/<collection>`",
    "ce_type": "`nearstream.<type>.v1`",
    "ce_subject": "Id of the document of a verdict, of the newer one of two, of the removed one. Subject of an alert.",
    "ce_time": "When the record was sent. The only header that differs when an event is sent again.",
    "ce_scheme": "Name of the scheme.",
    **_CONTENT_TYPE,
}
# Of every record on `documents`.
_PRODUCER_HEADERS = {
    PRIVATE_HEADER: "`1` keeps the bytes of this record out of dead letters.",
    **_TRACE,
}
_VALUE_HEADERS = {**_CONTENT_TYPE, "content-encoding": "`gzip`, or `identity` for none.", **_PRODUCER_HEADERS}
_FIELD_HEADERS = {
    "nearstream-id": "The field `id`.",
    "nearstream-url": "The field `url`.",
    "nearstream-lineage": "The field `lineage`.",
    "nearstream-collection": "The field `collection`.",
    "nearstream-observed-at": "The field `observed_at`.",
    "nearstream-source": "The field `source`.",
    "nearstream-sender-hash": "The field `sender_hash`.",
    "nearstream-recipient-hashes": "The field `recipient_hashes`, separated by spaces.",
    "nearstream-against": "The field `against`, separated by spaces.",
    "nearstream-degraded": "What was not whole about reading the text, separated by spaces.",
}
_REMOVAL_HEADERS = {
    "nearstream-id": "The id of the removed document, if the record key is not its id.",
    "nearstream-collection": "The tenant, if it is not `default`.",
    ORIGIN_HEADER: "On `signatures`: `<topic>/<partition>/<offset>` of the removal on `documents`.",
}
_DEAD_HEADERS = {
    ID_HEADER: "32 hex characters, equal for every dead letter about this record.",
    REASON_HEADER: "Why the record was refused. Treat it as an open string.",
    DETAIL_HEADER: "Field and expectation, never a value of the document.",
    STAGE_HEADER: "Where it was refused.",
    WORKER_HEADER: "Release and role of the worker.",
    TOPIC_HEADER: "Topic of the refused record.",
    PARTITION_HEADER: "Its partition.",
    OFFSET_HEADER: "Its offset.",
    TIMESTAMP_HEADER: "Its time, milliseconds since 1970.",
    REPLAYS_HEADER: "How often it was sent again.",
    BYTES_HEADER: "Size of its value.",
    SHA256_HEADER: "Hash of its value, in hex.",
    PAYLOAD_HEADER: "What the dead letter keeps: `full`, `head` or `hash`.",
    FROM_HEADER: "Where it came from: `sender-domain`, `site` or `collection`, and its name.",
}


def asyncapi_document(release: str, topic_prefix: str = "", index_retention_seconds: int = 0) -> Json:
    """Return the AsyncAPI document of a deployment of this release."""
    _, schemas = components(tuple(MESSAGES.values()), "#/components/schemas/{name}")
    return {
        "asyncapi": "3.0.0",
        "info": {
            "title": "nearstream",
            "version": release,
            "description": "Tells of each document of a stream how it relates to the documents before it.",
            "license": {"name": "Apache-2.0"},
        },
        "defaultContentType": "application/json",
        "channels": {
            _channel(topic): _described(topic, topic_prefix, topic.config(index_retention_seconds))
            for topic in topics.ALL
        },
        "operations": _operations(),
        "components": {
            "messages": _messages(),
            "schemas": {name: _draft_07(schema) for name, schema in sorted(schemas.items())},
        },
    }


def _channel(topic: Topic) -> str:
    return topic.name.removeprefix("nearstream.").removesuffix(".v1")


def _described(topic: Topic, prefix: str, config: dict[str, str]) -> Json:
    names = [name for value in topic.values for name in _MESSAGES_OF[value]]
    numbers = {name: int(text) for name, text in config.items() if text.lstrip("-").isdigit()}
    named = ("retention.ms", "delete.retention.ms", "max.message.bytes")
    settings = {name: numbers[name] for name in named if name in numbers}
    return {
        "address": prefix + topic.name,
        "description": f"Key: {topic.key}.",
        "messages": {name: {"$ref": f"#/components/messages/{name}"} for name in names},
        "bindings": {
            "kafka": {
                "bindingVersion": "0.5.0",
                "partitions": topic.partitions,
                "topicConfiguration": {"cleanup.policy": topic.cleanup.split(","), **settings},
            }
        },
    }


def _operations() -> Json:
    found: Json = {}
    for role, (received, sent) in _OPERATIONS.items():
        for action, used in (("receive", received), ("send", (*sent, topics.DEAD_LETTERS))):
            for topic in used:
                reference = {"$ref": f"#/channels/{_channel(topic)}"}
                name = f"{role}-{action}-{_channel(topic)}"
                found[name] = {"action": action, "channel": reference, "summary": f"`nearstream worker {role}`"}
    return found


def _messages() -> Json:
    """Return each message with its headers."""
    found: Json = {"document": _message("document", _VALUE_HEADERS)}
    for name, content_type in _RAW.items():
        headers = _headers(_VALUE_HEADERS | _FIELD_HEADERS)
        headers["patternProperties"] = {"^nearstream-label-": {**_TEXT, "description": "The label of that name."}}
        found[name] = {
            "name": name,
            "summary": "The content of a document, whose fields are headers.",
            "contentType": content_type,
            "headers": headers,
            "payload": _TEXT,
        }
    found["removal"] = {
        "name": "removal",
        "summary": "A null value removes what its key names.",
        "headers": _headers(_REMOVAL_HEADERS | _PRODUCER_HEADERS),
        "payload": {"type": "null"},
    }
    found["signature"] = {
        **_message("signature", _CONTENT_TYPE | _TRACE | _PARTS),
        "contentType": "application/msgpack",
        "summary": "All that is kept of a text: a msgpack array, whose byte fields are binary and not base64.",
    }
    for name in _EVENTS:
        found[name] = _message(name, _EVENT_HEADERS | _TRACE | (_PARTS if name == "verdict" else {}))
    found["alert"] = _message("alert", _EVENT_HEADERS)
    found["label"] = _message("label", {})
    found["silence"] = _message("silence", {})
    found["label_change"] = _message("label_change", _EVENT_HEADERS)
    found["decision"] = _message("decision", _CONTENT_TYPE)
    found["dead_letter"] = {
        "name": "dead_letter",
        "summary": "A refused record: its key, its headers and then these, and its value or a part of it.",
        "headers": _headers(_DEAD_HEADERS),
        "payload": {},
    }
    return found


def _message(name: str, headers: dict[str, str]) -> Json:
    message = MESSAGES[name].__name__
    reference = {"$ref": f"#/components/schemas/{message}"}
    shown: Json = {"name": name, "title": message, "contentType": "application/json", "payload": reference}
    return {**shown, "headers": _headers(headers)} if headers else shown


def _headers(meanings: dict[str, str]) -> Json:
    properties = {name: {**_TEXT, "description": meaning} for name, meaning in meanings.items()}
    return {"type": "object", "properties": properties}


def _draft_07(schema: Any) -> Any:  # noqa: ANN401 - a JSON value
    """Return a schema in the older form of JSON Schema that AsyncAPI reads."""
    if isinstance(schema, list):
        return [_draft_07(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    made = {name: _draft_07(value) for name, value in schema.items()}
    if "prefixItems" in made:
        made["additionalItems"] = made.pop("items", True)
        made["items"] = made.pop("prefixItems")
    return made
