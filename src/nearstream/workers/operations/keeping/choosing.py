"""Choose which documents to keep: those of which enough is in no document kept before."""

import os
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import partial
from tempfile import TemporaryDirectory
from typing import NamedTuple

from msgspec.structs import replace

from nearstream.schemas.documents.document import Document
from nearstream.streams.matching.arriving import Arrival, Arriving, runs
from nearstream.streams.matching.looking_up import Found, find, look_up_all, newcomer
from nearstream.streams.matching.telling import Matched
from nearstream.workers.files.source import Item, Refused
from nearstream.workers.pipeline.deployment import Deployment
from nearstream.workers.pipeline.in_process import BATCH, Embedded, Outcome, batches, embedded
from nearstream.workers.sqlite.file import IndexFile

_CACHE_KIB = 32_768  # of the index in memory, however many documents there are
SHARE_MAX = 0.25  # A document of which more is new is kept, however short it is.
_PART_MAX = 255  # characters of an id, and of the place behind it that makes it unique
_BEFORE_PLACE = "\u241f"


@dataclass(frozen=True)
class Limit:
    """How much of a dropped document may be new at most."""

    amount: float = 100.0  # characters, or percent of those of the document
    is_percent: bool = False

    def drops(self, new: int, characters: int) -> bool:
        """Return whether a document with this amount of new text is dropped."""
        most = self.amount * characters / 100 if self.is_percent else min(self.amount, SHARE_MAX * characters)
        return new <= most

    def __str__(self) -> str:
        """Return the limit as it is given on the command line."""
        return f"{self.amount:g}" + "%" * self.is_percent


class Choice(NamedTuple):
    """What becomes of a document."""

    item: Item | Refused
    outcome: Outcome  # its refusal, or that it has no words, or that it was read
    is_dropped: bool = False
    characters: int = 0  # all of its normal form. 0: nothing was decided.
    new: int = 0  # how many of them are in no document kept before
    verdict: str | None = None  # what it is to those
    of: str | None = None  # the id of the one that is most like it
    of_source: str = ""  # file and line of that one, or its id if `scan` alone has read it
    family: str | None = None  # the family of its copies


@contextmanager
def index_of_kept(deployment: Deployment, path: str | None, folder: str) -> Iterator[IndexFile]:
    """Open the index of kept documents, and commit at the end of the block.

    Without a path the index is temporary, and in this folder, because there is room for the documents.
    """
    with (
        TemporaryDirectory(prefix=".nearstream-", dir=folder or ".", ignore_cleanup_errors=True) as beside,
        closing(deployment.index_file(path or os.path.join(beside, "index"))) as index,
    ):
        index.file.execute(f"PRAGMA cache_size = -{_CACHE_KIB}")
        yield index
        if path:
            index.commit()


async def choose(
    deployment: Deployment, index: IndexFile, items: Iterable[Item | Refused], limit: Limit, run: str = ""
) -> AsyncIterator[Choice]:
    """Yield what becomes of each document, in order.

    The index learns only what is kept, so that no document is dropped because of one that was dropped. The caller
    commits. `run` names this run, where the index has documents of others.
    """
    job = embedded(deployment, index)
    for some in batches(items, BATCH):
        read = [job.read_item(item, partial(_named, item.source + run)) for item in some]
        documents = [
            (arrival, newcomer(arrival.signature, deployment.scheme, deployment.key, deployment.thresholds))
            for _, arrival in read
            if arrival is not None and arrival.signature is not None
        ]
        chosen = [each for run in runs(documents, are_apart=True) for each in await _choose_apart(job, run, limit)]
        index.flush()
        decided = iter(chosen)
        for item, (outcome, arrival) in zip(some, read, strict=True):
            is_decided = arrival is not None and arrival.signature is not None
            yield _choice(item, outcome, *next(decided)) if is_decided else Choice(item, outcome)


async def _choose_apart(
    job: Embedded, run: Sequence[tuple[Arrival, Arriving | None]], limit: Limit
) -> list[tuple[Found, Matched | None]]:
    """Look up documents without a common key, and add the kept ones to the index."""
    asked = [each for _, each in run if each is not None]
    found = [find(each, near) for each, near in zip(asked, await look_up_all(job.store, asked), strict=True)]
    kept = [arrival for (arrival, _), each in zip(run, found, strict=True) if not _is_dropped(each, limit)]
    matched = iter(await job.matcher.match_all(kept, are_apart=True))
    job.keep(kept)
    return [(each, None if _is_dropped(each, limit) else next(matched)) for each in found]


def _is_dropped(found: Found, limit: Limit) -> bool:
    new = found.novelty.novel.value
    return bool(found.related) and limit.drops(new, found.newcomer.signature.characters)


def _choice(item: Item | Refused, outcome: Outcome, found: Found, matched: Matched | None) -> Choice:
    own, best = found.newcomer.signature, found.best
    name, _, place = best.earlier.id.partition(_BEFORE_PLACE) if best else ("", "", "")
    family = found.families[best.number].family_id if best else None
    if matched is not None and matched.verdict is not None:
        family = matched.verdict.family.id
    return Choice(
        item,
        outcome,
        matched is None,
        own.characters,
        found.novelty.novel.value,
        best.relation if best else "unique",
        name if best else None,
        place or name,
        family,
    )


def _named(place: str, document: Document) -> Document:
    """Return a document with a unique id, because rows of a dataset may share one."""
    name = f"{(document.id or '')[:_PART_MAX]}{_BEFORE_PLACE}{place[-_PART_MAX:]}"
    return replace(document, id=name, against=())
