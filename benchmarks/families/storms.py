"""Storms of copies, campaigns and histories in memory."""

import asyncio
from collections.abc import Iterable

from benchmarks.families.feeding import SCHEME, Fed, feed, signed
from benchmarks.families.texts import revisions, unique
from benchmarks.quality.scoring import Figures
from benchmarks.storing import new_store
from nearstream.streams.store.limits import IndexLimits

EQUAL = 300
FILES, STATES = 30, 40
WORDS = 700


def fed_one_by_one(texts: Iterable[str]) -> Fed:
    """Match texts one by one."""
    return asyncio.run(feed(signed(texts), new_store(SCHEME, IndexLimits(retention_seconds=0))))


def equal_texts() -> Figures:
    """Return the events and bytes of equal texts."""
    (text,) = unique(1, WORDS, 0)
    fed = fed_one_by_one([text] * EQUAL)
    return {**fed.figures(), "events": len(fed.events), "bytes_sent": fed.bytes_sent()}


def histories() -> Figures:
    """Return the figures of files with many revisions."""
    return fed_one_by_one(revisions(FILES, STATES)).figures()
