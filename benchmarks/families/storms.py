"""Storms of copies, campaigns and histories in memory."""

import asyncio
from collections.abc import Iterable

from benchmarks.families.feeding import SCHEME, Fed, feed, signed
from benchmarks.families.texts import revisions, unique, varied
from benchmarks.quality.scoring import Figures
from benchmarks.storing import new_store
from nearstream.streams.store.limits import IndexLimits

EQUAL = 300
FILES, STATES = 30, 40
WORDS = 700
VARIED_SHARE = 0.0125  # two such copies share .88 of their shingles and .82 of their anchors


def fed_one_by_one(texts: Iterable[str], events_per_family: int = 1) -> Fed:
    """Match texts one by one."""
    limits = IndexLimits(retention_seconds=0, events_per_family=events_per_family)
    return asyncio.run(feed(signed(texts), new_store(SCHEME, limits)))


def equal_texts() -> Figures:
    """Return the events and bytes of equal texts."""
    (text,) = unique(1, WORDS, 0)
    fed = fed_one_by_one([text] * EQUAL)
    return {**fed.figures(), "events": len(fed.events), "bytes_sent": fed.bytes_sent()}


def histories() -> Figures:
    """Return the figures of files with many revisions, with families and without."""
    return {
        name: fed_one_by_one(revisions(FILES, STATES), limit).figures()
        for name, limit in (("families", 1), ("all pairs", 0))
    }


def varied_storm(documents: int) -> Figures:
    """Return the figures of copies that all differ in many places."""
    return fed_one_by_one(varied(documents, WORDS, VARIED_SHARE)).figures()
