"""Compare messages with what people would use instead: `python -m benchmarks.contract`.

Documents and events beside validating records of Faust, headers of an event beside the CloudEvents SDK, the bytes of a
signature beside the same values in JSON. The last ratio is what messages cost beside signing. Prints one JSON object.
"""

import argparse
import asyncio
import json
import sys
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any

import faust
import msgspec
from cloudevents.core.bindings.kafka import to_binary_event
from cloudevents.core.v1.event import CloudEvent

from benchmarks.speed import gates
from benchmarks.speed.measure import Effort, cpu, effort_options, pin, timed
from benchmarks.texts import texts
from nearstream.schemas.documents.document import Document
from nearstream.schemas.topics.codec import (
    decode_document,
    encode_json,
    encode_signature,
    event_headers,
)
from nearstream.schemas.verdicts.events import NearDuplicate, kind_of, subject_of
from nearstream.streams.fingerprints.hashing import HashKey
from nearstream.streams.matching.matcher import Matcher
from nearstream.streams.signing.scheme import DEFAULT_LABEL, Scheme, preset
from nearstream.streams.signing.signer import Signer
from nearstream.streams.store.limits import IndexLimits
from nearstream.streams.store.local import local_store

_SIZE = "en-5"
_KEY = HashKey.public()
_SENT_AT = datetime(2026, 3, 2, 8, 15, tzinfo=UTC)


class FaustDocument(faust.Record, validation=True, coerce=True, serializer="json"):
    """A document with the fields that are sent, as a validating record."""

    id: str
    text: str
    url: str
    collection: str
    observed_at: datetime
    source: str
    labels: dict[str, str]


class FaustRef(faust.Record, coerce=True, serializer="json"):
    """A document that an event names, as a record."""

    id: str
    version: str
    observed_at: datetime
    characters: int


class FaustEvent(faust.Record, coerce=True, serializer="json"):
    """A near-duplicate, as a record. Its evidence is a dictionary, which is cheaper than records."""

    event_id: str
    collection: str
    scheme: str
    newer: FaustRef
    older: FaustRef
    same_lineage: bool
    rule: str
    thresholds: dict[str, float]
    confidence: float
    evidence: dict[str, Any]
    low_confidence: list[str]
    degraded: list[str]


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the figures and return the exit code: 1 if a gate is missed."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.contract", description=(__doc__ or "").splitlines()[0])
    effort_options(parser)
    effort = Effort.of(parser.parse_args(arguments))
    pin()
    found = measured(effort)
    print(json.dumps({"cpu": cpu(), **found}, indent=1))
    return int(gates.failed(found["gates"]))


def measured(effort: Effort) -> dict[str, Any]:
    """Return microseconds by step, and the gates."""
    document = _document("a", texts(_SIZE)[0])
    value, scheme = encode_json(document), preset(DEFAULT_LABEL, _KEY)
    signer, event = Signer(scheme, _KEY), _event(scheme, document)
    signature, record = signer.sign(document), _as_record(event)
    steps: dict[str, Callable[[object], object]] = {
        "decode a document": lambda _: decode_document(value),
        "decode a document, Faust": lambda _: FaustDocument.loads(value),
        "encode an event": lambda _: encode_json(event),
        "encode an event, Faust": lambda _: record.dumps(),
        "headers of an event": lambda _: event_headers(event, _SENT_AT),
        "headers of an event, SDK": lambda _: to_binary_event(_cloud_event(event)),
        "messages of a document": lambda _: (
            decode_document(value),
            encode_json(event),
            event_headers(event, _SENT_AT),
        ),
        "sign a document": lambda _: signer.sign(document),
    }
    us = {name: timed(step, [None], effort).us for name, step in steps.items()}
    sizes = len(encode_signature(signature)), len(msgspec.json.encode(msgspec.structs.asdict(signature)))

    def ratio(one: str, other: str) -> list[float]:
        return [us[one] / us[other]]

    found = {
        "decode a document, Faust / ours": gates.at_least(ratio("decode a document, Faust", "decode a document"), 5),
        "encode an event, Faust / ours": gates.at_least(ratio("encode an event, Faust", "encode an event"), 8),
        "headers, SDK / ours": gates.at_least(ratio("headers of an event, SDK", "headers of an event"), 3),
        "bytes of a signature, JSON / ours": gates.at_least([sizes[1] / sizes[0]], 1.25),
        "messages / signing": gates.at_most(ratio("messages of a document", "sign a document"), 0.4),
    }
    return {
        "us": {name: round(value, 2) for name, value in us.items()},
        "signature_bytes": {"ours": sizes[0], "json": sizes[1]},
        "gates": found,
    }


def _document(name: str, text: str) -> Document:
    return Document(
        id=name,
        text=text,
        url="https://news.example/2026/03/02/weir",
        collection="news",
        observed_at=_SENT_AT,
        source="crawler",
        labels={"site": "news", "language": "en"},
    )


def _event(scheme: Scheme, document: Document) -> NearDuplicate:
    """Return the event about a document and a copy with one word changed."""
    words = (document.text or "").split(" ")
    words[len(words) // 2] = "changed"
    signer, matcher = Signer(scheme, _KEY), Matcher(local_store(IndexLimits(documents=10)), scheme, _KEY)

    async def match() -> NearDuplicate:
        await matcher.match(signer.sign(document))
        (event,) = (await matcher.match(signer.sign(_document("b", " ".join(words))))).events
        if not isinstance(event, NearDuplicate):
            raise TypeError(f"expected a near-duplicate, got {kind_of(event)}")
        return event

    return asyncio.run(match())


def _as_record(event: NearDuplicate) -> FaustEvent:
    plain = msgspec.to_builtins(event)
    return FaustEvent(
        **{name: plain[name] for name in FaustEvent._options.fields if name not in {"newer", "older"}},
        newer=_reference(plain["newer"]),
        older=_reference(plain["older"]),
    )


def _reference(plain: dict[str, Any]) -> FaustRef:
    return FaustRef(**{name: plain[name] for name in FaustRef._options.fields})


def _cloud_event(event: NearDuplicate) -> CloudEvent:
    """Return the same event for the SDK, whose data are encoded already."""
    attributes = {
        "id": event.event_id,
        "source": f"/nearstream/{event.collection}",
        "type": f"nearstream.{kind_of(event)}.v1",
        "subject": subject_of(event),
        "time": _SENT_AT,
        "scheme": event.scheme,
        "datacontenttype": "application/json",
        "specversion": "1.0",
    }
    return CloudEvent(attributes, b"{}")


if __name__ == "__main__":
    sys.exit(main())
