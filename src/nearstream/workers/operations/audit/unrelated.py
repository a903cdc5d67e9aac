"""Measure what unrelated texts of a running deployment have in common, to see whether the bounds fit them."""

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from random import Random
from statistics import fmean, stdev

from rapidfuzz.distance import Levenshtein

from nearstream.schemas.documents.signature import Signature
from nearstream.schemas.topics.codec import InvalidMessageError
from nearstream.streams.estimates.comparing import estimate
from nearstream.streams.estimates.stated import same_lineage
from nearstream.streams.ingest.parse import Removal
from nearstream.streams.signing.scheme import Scheme
from nearstream.streams.signing.shingle_sets import normal_form
from nearstream.streams.signing.signer import Unsigned
from nearstream.workers.operations.audit.window import Place, Window
from nearstream.workers.operations.terminal import Progress
from nearstream.workers.pipeline.in_process import Embedded, embedded

LENGTHS = (250, 500, 1_000, 2_000, 4_000, 8_000, 16_000, 32_000)  # a class reaches from one to the next, in characters
TEXTS_PER_CLASS = 100
PAIRS_PER_CLASS = 200
_SEED = 2011


@dataclass(frozen=True)
class Text:
    """A document of the sample. Its text is in memory only.

    Attributes:
        form: The normal form.
        signature: Its signature.
        place: Its record on `documents`.
    """

    form: str
    signature: Signature
    place: Place


@dataclass(frozen=True)
class Spread:
    """Mean and standard deviation of a share."""

    mean: float
    deviation: float

    @classmethod
    def of(cls, values: Sequence[float]) -> "Spread":
        """Return mean and standard deviation of at least one share."""
        return cls(fmean(values), stdev(values) if len(values) > 1 else 0.0)


@dataclass(frozen=True)
class LengthClass:
    """Unrelated pairs of texts of similar lengths.

    Attributes:
        characters: Least characters of a text.
        pairs: Pairs that were compared.
        distance: Their exact edit distance over the longer length.
        expected: The distance of unrelated texts that estimates assume, over the longer length.
        shared: Their estimated containment, which has to reach the bound `order_free_min` for any relation.
        reaching: Pairs whose containment reaches that bound.
    """

    characters: int
    pairs: int
    distance: Spread
    expected: Spread
    shared: Spread
    reaching: int


@dataclass(frozen=True)
class Unrelated:
    """What unrelated texts of a window have in common.

    Attributes:
        documents: Documents that were drawn.
        order_free_min: The bound of the deployment for the share of common text.
        classes: The pairs by length.
    """

    documents: int
    order_free_min: float
    classes: tuple[LengthClass, ...]


@dataclass
class _Reservoir:
    """A random sample of the texts of a length class (reservoir sampling, Vitter 1985)."""

    kept: list[Text] = field(default_factory=list)
    seen: int = 0

    def offer(self, text: Text, random: Random) -> None:
        self.seen += 1
        if len(self.kept) < TEXTS_PER_CLASS:
            self.kept.append(text)
        elif (place := random.randrange(self.seen)) < TEXTS_PER_CLASS:
            self.kept[place] = text


async def audit_unrelated(window: Window) -> Unrelated:
    """Compare random pairs of documents of a window that are not known to be related.

    Pairs of one family, with an event between their families, of one lineage or of two collections are left out.
    Texts shorter or longer than `LENGTHS` are left out too.

    Raises:
        KafkaUnreachableError: No broker answered in time.
        SettingsError: A topic does not exist.
    """
    random = Random(_SEED)  # noqa: S311 - a sample is no secret
    classes = {low: _Reservoir() for low in LENGTHS[:-1]}
    job = embedded(window.deployment)
    async with aclosing(window.documents(job)) as read:
        async for record, parsed in read:
            if isinstance(parsed, Removal):
                continue
            text = _text(job, parsed, (record.partition, record.offset), window.deployment.scheme)
            low = _class_of(len(text.form)) if text else None
            if text and low is not None:
                classes[low].offer(text, random)
    is_found = (await window.told()).pairs()
    least = window.deployment.thresholds.order_free_min
    progress = Progress("compared", 0, window.quiet)
    found = []
    for low, reservoir in classes.items():
        pairs = list(_pairs(reservoir.kept, is_found, random))
        if pairs:
            found.append(_measured(low, pairs, least, progress))
    progress.end()
    return Unrelated(sum(len(each.kept) for each in classes.values()), least, tuple(found))


def _measured(low: int, pairs: Sequence[tuple[Text, Text]], least: float, progress: Progress) -> LengthClass:
    distances, expected, shared = list[float](), list[float](), list[float]()
    for one, other in pairs:
        found, longer = estimate(one.signature, other.signature), max(len(one.form), len(other.form))
        distances.append(Levenshtein.distance(one.form, other.form) / longer)
        expected.append(found.expected / longer)
        shared.append(found.shared)
        progress.step()
    reaching = sum(each >= least for each in shared)
    return LengthClass(low, len(pairs), Spread.of(distances), Spread.of(expected), Spread.of(shared), reaching)


def _pairs(
    texts: Sequence[Text], is_found: Callable[[Place, Place], bool], random: Random
) -> Iterator[tuple[Text, Text]]:
    """Yield distinct random pairs of texts that are not known to be related."""
    every = [(one, other) for at, one in enumerate(texts) for other in texts[:at] if _may_be_unrelated(one, other)]
    random.shuffle(every)
    left = PAIRS_PER_CLASS
    for one, other in every:
        if left and not is_found(one.place, other.place):
            left -= 1
            yield one, other


def _may_be_unrelated(one: Text, other: Text) -> bool:
    a, b = one.signature, other.signature
    return a.collection == b.collection and not same_lineage(a, b) and a.digest != b.digest


def _class_of(characters: int) -> int | None:
    if not LENGTHS[0] <= characters < LENGTHS[-1]:
        return None
    return LENGTHS[bisect_right(LENGTHS, characters) - 1]


def _text(job: Embedded, unsigned: Unsigned, place: Place, scheme: Scheme) -> Text | None:
    """Return a document with its normal form. None: it is too large."""
    try:
        signature = job.signer.sign(*unsigned)
    except InvalidMessageError:
        return None
    form = normal_form(unsigned.document.text or "", scheme)
    return Text(form.data.tobytes().decode(), signature, place)
