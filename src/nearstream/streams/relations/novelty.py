"""Novelty: the amount and the places of new text in a document, and the places of removed text."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import sqrt

from msgspec.structs import replace as replace_fields

from nearstream.schemas.documents.evidence import Amount, Place, SourceRef
from nearstream.schemas.documents.signature import Signature
from nearstream.streams.estimates.passages import Cover, cover, uncovered, union
from nearstream.streams.fingerprints.parameters import TextRules
from nearstream.streams.fingerprints.sent_places import sent_places
from nearstream.streams.store.record import Comparable

SPANS_MAX = 32
SOURCES_MAX = 5
_LEAST_SPAN = 4  # characters, since the ends of two neighbouring passages are not known better
_LEAST_GAIN = 0.01  # of the text: a source that adds less is not worth a name

# Half of the 90 % band, measured on labelled pairs: each end of a passage is known to about its rate, and whether a run
# of common words reaches eight is not known for some.
_END = 1.3
_RUNS = 0.01
_UNSEEN = 2.3  # times the rate: nine of ten stretches without a symbol are shorter, and a change there leaves no trace
_UNASKED = 0.12  # of what no named document has, nine texts in ten have at most this share in documents not asked

Spans = Sequence[tuple[float, float]]


@dataclass(frozen=True)
class Source:
    """An earlier document with what it has of the arriving one."""

    earlier: Comparable  # the earlier document
    cover: Cover  # what it has
    is_common: bool  # both share only what many documents have


@dataclass(frozen=True)
class Novelty:
    """What is new in a document. `schemas/verdicts/verdict.py` describes the fields."""

    added: Amount | None
    novel: Amount
    novel_spans: tuple[Place, ...]
    sources: tuple[SourceRef, ...]
    common: int
    redundant: bool = False


def novelty(arriving: Signature, sources: Sequence[Source]) -> Novelty:
    """Return the novelty of a document beside the earlier documents that it was compared with.

    The first one is that which its verdict names. The order of the others does not matter. Without any, it is all new.
    """
    if not sources:
        whole = _amount(arriving, [], 0, 0)
        return Novelty(None, _unasked(whole), ((0, arriving.characters),), (), 0)
    known = union(span for source in sources for span in source.cover.spans)
    own = union(span for source in sources if not source.is_common for span in source.cover.spans)
    best = sources[0].cover
    rate = max(source.cover.rate for source in sources)
    is_equal = any(source.earlier.digest == arriving.digest for source in sources)
    unseen = 0 if is_equal else max(_LEAST_SPAN, round(_UNSEEN * rate))
    return Novelty(
        _amount(arriving, union(best.spans), best.rate, unseen),
        _unasked(_amount(arriving, known, rate, unseen)),
        _gaps(arriving, known),
        _fewest(arriving, sources),
        _in_characters(arriving, _bytes(known) - _bytes(own)),
    )


def _bytes(spans: Spans) -> float:
    return sum(end - start for start, end in spans)


def _in_characters(text: Signature, n_bytes: float) -> int:
    return round(n_bytes * text.characters / text.n_bytes)


def _amount(text: Signature, known: Spans, rate: int, unseen: int) -> Amount:
    """Return the characters outside of known spans, with a band of at least `unseen`."""
    value = text.characters - _in_characters(text, _bytes(known))
    inner = [end for span in known for end in span if 0 < end < text.n_bytes]
    half = round(_END * rate * sqrt(len(inner)) + (_RUNS * text.characters if inner else 0))
    return Amount(value, max(0, value - half), min(text.characters, max(value + half, unseen)))


def _unasked(novel: Amount) -> Amount:
    """Return an amount whose band begins lower, because documents that were not asked may have some of it."""
    return replace_fields(novel, low=max(0, novel.low - round(_UNASKED * novel.value)))


def removed_spans(earlier: Signature, arriving: Comparable) -> tuple[Place, ...]:
    """Return where an earlier document has what an arriving one has not, the longest first.

    Each end of a passage is known to about its rate. Half of the rate is taken off, so that nearly all of what was
    removed lies inside, also where two passages meet at a change that is too small for a gap.
    """
    (has,) = cover(earlier, [arriving])
    half, last = has.rate / 2, earlier.n_bytes - has.rate / 2
    ends = [(start + half if start else start, end if end > last else end - half) for start, end in has.spans]
    return _gaps(earlier, [(start, end) for start, end in ends if start < end])


def _gaps(text: Signature, known: Spans) -> tuple[Place, ...]:
    """Return the spans between known ones, the longest first, in characters of average width.

    Of too many the nearest are joined, because a span that is left out hides more than a few known words beside it.
    """
    width = text.characters / text.n_bytes
    places = ((round(start * width), round(end * width)) for start, end in known)
    found = uncovered(places, text.characters, _LEAST_SPAN)
    widest = sorted(range(1, len(found)), key=lambda at: found[at - 1][1] - found[at][0])[: SPANS_MAX - 1]
    cuts = sorted({0, *widest, len(found)})
    return longest_first([(found[first][0], found[end - 1][1]) for first, end in pairwise(cuts)])


def longest_first(places: Iterable[Place]) -> tuple[Place, ...]:
    """Return places by their length."""
    return tuple(sorted(places, key=lambda place: (place[0] - place[1], place)))


def _fewest(text: Signature, sources: Sequence[Source]) -> tuple[SourceRef, ...]:
    """Choose documents greedily until they cover the known text."""
    left = sorted(sources, key=lambda source: source.earlier.order)
    had: list[tuple[float, float]] = []
    chosen: list[SourceRef] = []
    while left and len(chosen) < SOURCES_MAX:
        unions = [union((*had, *source.cover.spans)) for source in left]
        most = max(unions, key=_bytes)
        gain = _bytes(most) - _bytes(had)
        if gain < max(1.0, _LEAST_GAIN * text.n_bytes):
            break
        best, had = left.pop(unions.index(most)), most
        chosen.append(SourceRef(best.earlier.id, best.earlier.version, _in_characters(text, gain)))
    return tuple(chosen)


def novelty_in_text(found: Novelty, text: str, rules: TextRules) -> Novelty:
    """Return a novelty whose places are in the text as sent, not in its normal form."""
    if not found.novel_spans:
        return found
    is_whole = not found.sources and found.added is None
    return replace(found, novel_spans=((0, len(text)),) if is_whole else sent_spans(found.novel_spans, text, rules))


def sent_spans(spans: Iterable[Place], text: str, rules: TextRules) -> tuple[Place, ...]:
    """Return the places of spans in a text, the longest first. They are given in its normal form."""
    return longest_first(sent_places(text, spans, rules))
