"""Make the example events in schemas/examples as a deployment with default settings makes them.

`make contract` writes them anew, and docs/openapi.json and the JSON Schema of each message, after a change of the
scheme or of what a message says.
"""

import asyncio
import json
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

from nearstream.schemas.documents.document import Document
from nearstream.schemas.documents.signature import Origin, Signature
from nearstream.schemas.published.json_schema import json_schemas
from nearstream.schemas.topics.codec import decode_document, encode_json, encode_signature
from nearstream.schemas.verdicts.events import RELATIONS, Event, kind_of
from nearstream.streams.ingest.defaults import DocumentLimits, fill_defaults
from nearstream.streams.matching.matcher import Matcher
from nearstream.streams.store.store import local_store
from nearstream.workers.http.openapi import description
from tests.support.made_up import KEY, SIGNER, STANDARD

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "schemas/examples"
DAY = "2026-03-02T"
VOTE = "the council will vote on it soon"
REMARK = (
    "please read this passage again before the committee meets on thursday since the numbers in it were corrected this"
    " morning by the office of the treasurer"
)


def made() -> dict[str, bytes]:
    """Return the bytes of the verdict, of each relation event and of the signature, by the name of their file."""
    signatures = list(_signatures())
    signature = next(each for each in signatures if each.id == "p-0312")
    events = asyncio.run(_matched(signatures))
    return {"signature.msgpack": encode_signature(signature)} | {
        f"{kind}.json": encode_json(next(each for each in events if kind_of(each) == kind))
        for kind in ("verdict", *RELATIONS)
    }


async def _matched(signatures: list[Signature]) -> list[Event]:
    """Return the relation events, and the verdict about `c-7730`."""
    matcher = Matcher(local_store(), STANDARD, KEY)
    events: list[Event] = []
    for signature in signatures:
        matched = await matcher.match(signature)
        events += matched.events
        events += [matched.verdict] if matched.verdict and matched.verdict.id == "c-7730" else []
    return events


def _signatures() -> Iterator[Signature]:
    """Yield signatures of texts made of speeches, and of the example document with a later state."""
    rows = map(json.loads, (ROOT / "examples/documents.jsonl").read_bytes().splitlines())
    words = {row["id"]: row["text"].split() for row in rows}
    base = words["sotu-1974-nixon"][200:1045]
    other = words["congress-1989-bush"]
    mail = words["congress-1991-bush"][50:1850]
    yield _signed("a-1041", base, f"{DAY}08:15:00Z", (3, 8811))
    yield _signed("b-2210", [word.upper() for word in base], f"{DAY}08:15:30Z", (0, 6650))
    edited = base[:430] + VOTE.split() + base[430:455] + base[467:]
    yield _signed("c-7730", edited, f"{DAY}08:16:40Z", (5, 1207), labels={"lang": "en"})
    yield _signed("<12@a.example>", mail, "2026-03-01T17:40:00Z", (2, 7702), collection="mail", source="mail")
    reply = mail[1300:1480] + REMARK.split()
    yield _signed("<77@d.example>", reply, f"{DAY}09:02:11Z", (1, 403), collection="mail", source="mail")
    flood = decode_document((EXAMPLES / "document.json").read_bytes())
    yield _sign(flood, (2, 4410), f"{DAY}08:15:00Z")
    later = (flood.text or "").replace("three metres forty in the morning", "three metres ten at noon")
    later += " The school bus takes its usual way again from Wednesday on."
    fields = {name: getattr(flood, name) for name in ("url", "collection", "source", "labels")}
    at = f"{DAY}11:30:00Z"
    yield _sign(Document(id="p-0388", text=later, observed_at=_time(at), **fields), (2, 4871), at)
    yield _signed("e-3316", base[455:] + base[:455] + other[20:36], f"{DAY}12:05:00Z", (4, 5518))
    around = other[100:740] + base[150:410] + other[740:1340]
    yield _signed("f-0420", around, f"{DAY}13:20:00Z", (0, 6919))


def _signed(
    name: str,
    words: list[str],
    at: str,
    place: tuple[int, int],
    *,
    collection: str = "news",
    source: str = "feed",
    labels: dict[str, str] | None = None,
) -> Signature:
    text = " ".join(words)
    document = Document(
        id=name, text=text, observed_at=_time(at), collection=collection, source=source, labels=labels or {}
    )
    return _sign(document, place, at)


def _sign(document: Document, place: tuple[int, int], at: str) -> Signature:
    origin = Origin("nearstream.documents.v1", *place, round(_time(at).timestamp() * 1000))
    return SIGNER.sign(fill_defaults(document, DocumentLimits()), origin)


def _time(at: str) -> datetime:
    return datetime.fromisoformat(at)


if __name__ == "__main__":
    for name, content in made().items():
        (EXAMPLES / name).write_bytes(content)
    (ROOT / "docs/openapi.json").write_text(json.dumps(description(), indent=1) + "\n")
    for name, schema in json_schemas().items():
        text = json.dumps(schema, indent=2, ensure_ascii=False) + "\n"
        (ROOT / f"schemas/published/v1/{name}.json").write_text(text, encoding="utf-8")
