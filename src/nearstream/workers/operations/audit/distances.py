"""Compare the distances that events tell with the exact ones, where both texts are still on `documents`."""

from contextlib import aclosing
from dataclasses import dataclass
from random import Random
from statistics import median

from msgspec import UnsetType

from nearstream.schemas.documents.evidence import Distance
from nearstream.schemas.verdicts.events import ExactDuplicate, PairEvent
from nearstream.streams.ingest.parse import Removal
from nearstream.streams.signing.exact import exact_distance, normal_text
from nearstream.workers.operations.audit.window import Place, Window, place_of
from nearstream.workers.pipeline.in_process import embedded

PAIRS_MAX = 200  # of a window, drawn by chance
_CHARACTERS_MAX = 100_000  # of a text that is kept
_SEED = 2011


@dataclass(frozen=True)
class Distances:
    """How the distances of events agree with the exact ones."""

    pairs: int  # that were compared exactly
    within: int  # of these, whose exact distance lies in the 90 % band of the event
    median_error: float | None  # of the estimates, over the length of the longer text. None: there is no pair


class PairSample:
    """A random sample of the pairs with a distance (reservoir sampling, Vitter 1985)."""

    def __init__(self) -> None:
        """Hold no pair yet."""
        self._random = Random(_SEED)  # noqa: S311 - a sample is no secret
        self._pairs: list[tuple[Place, Place, Distance]] = []
        self._seen = 0

    def offer(self, event: PairEvent) -> None:
        """Take the pair of an event, in place of another one where the sample is full."""
        one, other, distance = place_of(event.newer), place_of(event.older), event.evidence.distance
        if one is None or other is None or isinstance(distance, UnsetType) or isinstance(event, ExactDuplicate):
            return
        self._seen += 1
        if len(self._pairs) < PAIRS_MAX:
            self._pairs.append((one, other, distance))
        elif (at := self._random.randrange(self._seen)) < PAIRS_MAX:
            self._pairs[at] = (one, other, distance)

    async def compared(self, window: Window) -> Distances:
        """Read the texts of the sample, and compare the distances of its pairs."""
        wanted, texts = {place for pair in self._pairs for place in pair[:2]}, dict[Place, str]()
        async with aclosing(window.documents(embedded(window.deployment))) as read:
            async for record, parsed in read:
                place = (record.partition, record.offset)
                if place in wanted and not isinstance(parsed, Removal):
                    text = normal_text(parsed.document.text or "", window.deployment.scheme)
                    if len(text) <= _CHARACTERS_MAX:
                        texts[place] = text
        within, errors = 0, list[float]()
        for one, other, told in self._pairs:
            if one in texts and other in texts:
                exact = exact_distance(texts[one], texts[other])
                if exact is not None:
                    within += told.low <= exact <= told.high
                    errors.append(abs(told.value - exact) / max(len(texts[one]), len(texts[other])))
        return Distances(len(errors), within, round(median(errors), 4) if errors else None)
