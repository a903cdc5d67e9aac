"""Verdicts about pages, and a decider that takes them."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from hashlib import blake2b
from typing import Any

from msgspec.structs import replace

from nearstream.schemas.documents.document import to_milliseconds
from nearstream.schemas.documents.evidence import DocumentRef
from nearstream.schemas.documents.record import PageFacts
from nearstream.schemas.labels.decision import Decision
from nearstream.schemas.verdicts.verdict import DocumentVerdict, FamilyRef
from nearstream.streams.deciding.decider import Decider, Said
from nearstream.streams.deciding.deciding import may_skip
from nearstream.streams.deciding.memory import MemoryDecisions
from nearstream.streams.deciding.states import PageState
from nearstream.streams.estimates.frames import pack_parts
from nearstream.streams.fingerprints.hashing import HashKey
from nearstream.streams.ingest.sites import site_of

TIME = datetime(2026, 3, 2, 8, 15, tzinfo=UTC)
PAGE = "https://a.example/x"
COLLECTION = "news"


def version(text: str) -> str:
    """Return a version for a text, which may be any name."""
    return blake2b(text.encode()).hexdigest()[:16]


def ref(name: str = PAGE, minutes: float = 0, text: str = "", lineage: str | None = None) -> DocumentRef:
    """Return the document of a page."""
    return DocumentRef(
        id=name,
        version=version(text),
        observed_at=TIME + timedelta(minutes=minutes),
        characters=1_000,
        url=name,
        lineage=lineage or name,
    )


def verdict(
    kind: str,
    minutes: float = 0,
    of: DocumentRef | None = None,
    *,
    name: str = PAGE,
    text: str = "",
    **fields: Any,  # noqa: ANN401 - any field of a verdict
) -> DocumentVerdict:
    """Return the verdict about a fetch of a page."""
    own = ref(name, minutes, text)
    given: dict[str, Any] = {field: getattr(own, field) for field in DocumentRef.__struct_fields__}
    founder, family = fields.pop("founder", of or own), fields.pop("family", "f")
    given |= {
        "event_id": blake2b(f"{kind}-{name}-{minutes}".encode()).hexdigest()[:32],
        "collection": COLLECTION,
        "scheme": "s",
        "verdict": kind,
        "of": of,
        "family": FamilyRef(id=family, ordinal=1, first_seen=TIME, founder=founder),
        "events": 0,
        "degraded": (),
    }
    return DocumentVerdict(**(given | fields))


def parts(*main: str, beside: Sequence[str] = ()) -> bytes:
    """Return the parts of a page, by their texts."""
    return pack_parts([*((text, True) for text in main), *((text, False) for text in beside)], HashKey.public())


@dataclass
class Pages:
    """Pages and the decisions about them."""

    store: MemoryDecisions = field(default_factory=MemoryDecisions)  # where they are kept
    # The decisions after the last event, by the name of the page.
    said: dict[str, Decision | None] = field(default_factory=dict)
    noticed: list[tuple[str, str]] = field(default_factory=list)  # hosts and error texts

    @property
    def decider(self) -> Decider:
        """What makes the decisions."""
        return Decider(self.store, site_of, notice=lambda host, family: self.noticed.append((host, family)))

    async def take(self, *verdicts: DocumentVerdict, parts: bytes = b"", declared: str = "") -> Decision:
        """Take verdicts, and return the decision about the page of the last one."""
        for each in verdicts:
            self.heard(await self.decider.after_verdict(each, PageFacts(parts, declared)))
        return self.of(verdicts[-1].lineage or "")

    async def fetch(
        self, name: str, hours: float, *main: str, beside: Sequence[str] = (), of: DocumentRef | None = None
    ) -> Decision:
        """Fetch a page that shows these texts, and return the decision about the page."""
        text, seen = (blake2b("\n".join(each).encode()).hexdigest() for each in (main, beside))
        made = verdict("exact_duplicate" if of else "unique", 60 * hours, of, name=name, text=text)
        labels = {"surroundings": seen} if beside else {}
        return await self.take(replace(made, labels=labels), parts=parts(*main, beside=beside))

    def heard(self, said: list[Said]) -> None:
        """Remember what was said last."""
        self.said = {each.name: each.decision for each in said}

    def skips(self, name: str, hours: float) -> bool:
        """Return whether a page need not be fetched at a time."""
        return may_skip(self.of(name), to_milliseconds(TIME + timedelta(hours=hours)))

    def of(self, name: str) -> Decision:
        """Return the decision about a page."""
        return self.state(name).decision

    def state(self, name: str) -> PageState:
        """Return the state of a page."""
        return self.store.states[COLLECTION, name]
