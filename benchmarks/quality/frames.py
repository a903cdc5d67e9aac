"""Measure what is told of documents that share a frame: navigation, a notice, the layout of a newsletter.

    python -m benchmarks.quality.frames [--corpus DIR] [--seed N]

A person calls two documents the same if one was fetched again, or if they hold one article. Each stream is made of real
text and matched in memory. Prints a JSON object with the events about other pairs, for each document, and those that
tell more than an overlap, the share of the true pairs that an event told or a family holds, and the comparisons for
each document. Of 24 sites of 8 pages each, it prints the share of pairs that are told as more than an overlap. The exit
code is 2 when an input cannot be read.
"""

import argparse
import asyncio
import json
import random
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta

from benchmarks.quality.corpus import Text, document, share
from benchmarks.quality.recording import Both
from benchmarks.quality.retrieval import BEGIN
from benchmarks.quality.scoring import Figures
from benchmarks.stream.prose import Prose, joined, options_and_sources
from nearstream.schemas.documents.document import Document
from nearstream.schemas.verdicts.events import Overlap, Retraction
from nearstream.streams.fingerprints.hashing import HashKey
from nearstream.streams.matching.matcher import Matcher
from nearstream.streams.signing.scheme import DEFAULT_LABEL, preset
from nearstream.streams.signing.signer import Signer
from nearstream.streams.store.limits import IndexLimits
from nearstream.streams.store.store import local_store

_ARTICLE = 150  # words
_SITES = 12
_SMALL_SITES, _PAGES = 24, 8


@dataclass(frozen=True)
class Stream:
    """Documents in order of arrival, and the pairs of ids that a person calls the same."""

    texts: list[Text]
    same: set[Both]


def one_site(prose: Prose, draw: random.Random) -> Stream:
    """Return 600 pages with 300 words of navigation and footer, 80 of them fetched again."""
    head, foot = prose.words(180), prose.words(120)
    pages = [Text(f"p{number}", joined([head, prose.words(_ARTICLE), foot])) for number in range(600)]
    again = draw.sample(pages, 80)
    placed = [(float(number), page) for number, page in enumerate(pages)]
    placed += [(draw.uniform(pages.index(page), 600), Text(f"{page.id}-again", page.text)) for page in again]
    placed.sort(key=lambda place: place[0])
    return Stream([page for _, page in placed], {frozenset((page.id, f"{page.id}-again")) for page in again})


def notices(prose: Prose, draw: random.Random) -> Stream:
    """Return 300 mails of 30 to 300 words with one notice of 75 words at their end."""
    notice = prose.words(75)
    return Stream([Text(f"m{n}", joined([prose.words(draw.randint(30, 300)), notice])) for n in range(300)], set())


def newsletters(prose: Prose, _: random.Random) -> Stream:
    """Return 60 issues of 300 words of news in a frame of 240 words."""
    frame = [prose.words(60) for _ in range(4)]
    return Stream(
        [
            Text(f"n{n}", joined([frame[0], *(part for each in frame[1:] for part in (prose.words(100), each))]))
            for n in range(60)
        ],
        set(),
    )


def syndicated(prose: Prose, draw: random.Random, frame: int = 300) -> Stream:
    """Return 300 pages of 12 sites, and 50 articles that appear on two of the sites each."""
    frames = [(prose.words(frame * 2 // 3), prose.words(frame // 3)) for _ in range(_SITES)]

    def page(name: str, site: int, article: Sequence[str]) -> Text:
        return Text(name, joined([frames[site][0], article, frames[site][1]]))

    texts = [page(f"x{n}", draw.randrange(_SITES), prose.words(_ARTICLE)) for n in range(300)]
    for number in range(50):
        article, sites = prose.words(_ARTICLE), draw.sample(range(_SITES), 2)
        texts += [page(f"s{number}-{place}", site, article) for place, site in enumerate(sites)]
    draw.shuffle(texts)
    return Stream(texts, {frozenset((f"s{number}-0", f"s{number}-1")) for number in range(50)})


def large_frames(prose: Prose, draw: random.Random) -> Stream:
    """Return the same with frames of ten times the article."""
    return syndicated(prose, draw, 10 * _ARTICLE)


def licence_headers(prose: Prose, draw: random.Random) -> Stream:
    """Return 300 source files of 40 to 400 words below one licence of 90 words."""
    licence = prose.words(90)
    return Stream([Text(f"l{n}", joined([licence, prose.words(draw.randint(40, 400))])) for n in range(300)], set())


def products(prose: Prose, draw: random.Random) -> Stream:
    """Return 200 pages with 15 to 60 words about a product, 12 labels with values, and 120 words of terms."""
    labels, terms = [prose.words(2) for _ in range(12)], prose.words(120)

    def page() -> str:
        table = (part for label in labels for part in (label, [str(draw.randint(1, 900)), *prose.words(1)]))
        return joined([prose.words(draw.randint(15, 60)), *table, terms])

    return Stream([Text(f"q{n}", page()) for n in range(200)], set())


STREAMS: dict[str, Callable[[Prose, random.Random], Stream]] = {
    "one site": one_site,
    "notices": notices,
    "newsletters": newsletters,
    "licence headers": licence_headers,
    "products": products,
    "syndicated": syndicated,
    "syndicated in large frames": large_frames,
}


async def measure(stream: Stream) -> Figures:
    """Return the figures of a stream, with overlaps among the relations that are sent."""
    key = HashKey.public()
    scheme = preset(DEFAULT_LABEL, key)
    signer, told, families, near = Signer(scheme, key), set[Both](), dict[str, str](), set[Both]()
    matcher = Matcher(local_store(IndexLimits(retention_seconds=0)), scheme, key)
    began = time.process_time()
    for number, text in enumerate(stream.texts):
        matched = await matcher.match(signer.sign(document(text, BEGIN + timedelta(seconds=number))))
        for event in matched.events:
            if not isinstance(event, Retraction):
                (told if isinstance(event, Overlap) else near).add(frozenset((event.newer.id, event.older.id)))
        families |= {text.id: matched.verdict.family.id} if matched.verdict else {}
    seconds, count = time.process_time() - began, len(stream.texts)
    told |= near
    found = [both for both in stream.same if both in told or len({families[name] for name in both}) == 1]
    return {
        "documents": count,
        "other_pairs_told_per_document": round(len(told - stream.same) / count, 3),
        "told_as_more_than_an_overlap": round(len(near - stream.same) / count, 3),
        "same": len(stream.same),
        "same_found": share(len(found), len(stream.same)),
        "comparisons_per_document": round(matcher.counts.candidates["looked_up"] / count, 1),
        "ms_per_document": round(1000 * seconds / count, 2),
    }


async def first_pages(prose: Prose, *, with_urls: bool) -> float | None:
    """Return the share of pairs within 24 sites of 8 pages that are told as more than an overlap."""
    key = HashKey.public()
    scheme = preset(DEFAULT_LABEL, key)
    signer, matcher = Signer(scheme, key), Matcher(local_store(IndexLimits(retention_seconds=0)), scheme, key)
    more, at = 0, BEGIN
    for site in range(_SMALL_SITES):
        head, foot = prose.words(100), prose.words(50)
        for page in range(_PAGES):
            at += timedelta(seconds=1)
            url = f"https://s{site}.example/{page}" if with_urls else None
            text = joined([head, prose.words(60 + 30 * page), foot])
            one = Document(id=f"{site}-{page}", text=text, observed_at=at, url=url, lineage=url)
            events = (await matcher.match(signer.sign(one))).events
            more += sum(not isinstance(event, Overlap | Retraction) for event in events)
    return share(more, _SMALL_SITES * _PAGES * (_PAGES - 1) // 2)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return 0."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="seed of the documents (default 1)")
    options, texts = options_and_sources(parser, arguments)
    figures = {
        name: asyncio.run(measure(make(Prose(texts, options.seed), random.Random(options.seed))))
        for name, make in STREAMS.items()
    }
    first = {
        name: asyncio.run(first_pages(Prose(texts, options.seed), with_urls=with_urls))
        for name, with_urls in (("with_urls", True), ("without_urls", False))
    }
    print(json.dumps({"seed": options.seed, "streams": figures, "first_pages": first}, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
