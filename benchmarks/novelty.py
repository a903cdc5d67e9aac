"""Measure what verdicts say is new against exact novelty by brute force.

    python -m benchmarks.novelty --corpus DIR [--documents N] [--pairs N] [--seed N] [--through memory|redis]

Documents of the corpus are matched in a random order, and the four streams of `benchmarks.stream`. Exactly new is what
lies outside of every run of eight words that an earlier document has. Beside them are pairs with one new sentence of 60
to 120 characters in texts of 1 to 60 KB, and where verdicts about labelled revisions, one or twelve in a text, say that
text is gone and new, against the words that an edit takes out and puts in. Prints one JSON object. The exit code is 2
if the corpus is unreadable.
"""

import argparse
import asyncio
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from random import Random
from statistics import fmean, median

from msgspec import UnsetType
from rapidfuzz.distance import Indel

from benchmarks.quality.corpus import CorpusError, Pair, Text, document, read_pairs, read_texts, share, words
from benchmarks.quality.retrieval import BEGIN
from benchmarks.quality.scoring import Figures
from benchmarks.speed.measure import positive
from benchmarks.storing import add_option, new_store, through
from benchmarks.stream.prose import Prose, sources
from benchmarks.stream.texts import STREAMS
from nearstream.schemas.documents.document import Document
from nearstream.schemas.documents.evidence import Place
from nearstream.schemas.verdicts.verdict import DocumentVerdict
from nearstream.streams.fingerprints.hashing import HashKey
from nearstream.streams.matching.matcher import Matcher
from nearstream.streams.signing.scheme import DEFAULT_LABEL, preset
from nearstream.streams.signing.signer import Signer
from nearstream.streams.store.limits import IndexLimits

RUN_WORDS = 8
SECOND = timedelta(seconds=1)
CHANGED = ("near_duplicate", "version", "containment")
LARGEST = 60_000  # characters of a text
STREAMED = 1_500  # documents of each made stream
_SENTENCE = (60, 120)
_SIZES = (1_000, 4_000, 16_000, 60_000)


@dataclass
class Matching:
    """A matcher with what signs for it."""

    signer: Signer
    matcher: Matcher

    @classmethod
    def new(cls) -> "Matching":
        """Begin with an empty index."""
        key = HashKey.public()
        scheme = preset(DEFAULT_LABEL, key)
        store = new_store(scheme, IndexLimits(retention_seconds=0))
        return cls(Signer(scheme, key), Matcher(store, scheme, key))

    async def verdict(self, one: Document) -> DocumentVerdict | None:
        """Match a document."""
        signature = self.signer.sign(one)
        return (await self.matcher.match(signature)).verdict if signature.n_bytes else None


@dataclass
class Runs:
    """All runs of eight words that were seen."""

    seen: set[int] = field(default_factory=set)

    def known(self, text: Sequence[str]) -> bytearray:
        """Return of each word of a text whether it is in a run that was seen."""
        known = bytearray(len(text))
        for at, run in enumerate(_runs(text)):
            if run in self.seen:
                known[at : at + RUN_WORDS] = b"\1" * RUN_WORDS
        return known

    def new(self, text: Sequence[str]) -> int:
        """Return the characters of the words of a text that are in no run that was seen, then see its runs."""
        known = self.known(text)
        self.seen.update(_runs(text))
        return sum(len(word) + 1 for word, is_known in zip(text, known, strict=True) if not is_known)


def _runs(text: Sequence[str]) -> list[int]:
    return [hash(tuple(text[at : at + RUN_WORDS])) for at in range(len(text) - RUN_WORDS + 1)]


def made(seed: int) -> dict[str, list[Document]]:
    """Return the documents of the four streams that the speed of workers is measured with, of the examples' texts."""
    texts = sources(None)
    return {
        name: [
            Document(id=record.key, text=record.text, url=record.fields.get("url"), observed_at=BEGIN + number * SECOND)
            for number, record in enumerate(make(Prose(texts, seed), STREAMED, seed))
        ]
        for name, make in STREAMS.items()
    }


async def stream(documents: Sequence[Document]) -> Figures:
    """Compare what verdicts say of documents with what is exactly new in them."""
    match, runs = Matching.new(), Runs()
    errors, held, of_known, names = [], [], [], []
    for each in documents:
        verdict = await match.verdict(each)
        true = runs.new(words(each.text or ""))
        if verdict is None or isinstance(verdict.novel, UnsetType):
            continue
        size = max(verdict.characters, 1)
        error = abs(verdict.novel.value - true) / size
        errors.append(error)
        held.append(verdict.novel.low - 1 <= true <= verdict.novel.high + 1)
        if verdict.verdict != "unique":
            of_known.append(error)
        if verdict.redundant:
            names.append(true)
    return {
        "documents": len(errors),
        "error": round(fmean(errors), 4),
        "error_of_related": round(fmean(of_known), 4) if of_known else None,
        "in_band": share(sum(held), len(held)),
        "redundant": len(names),
        "redundant_with_new_text": sum(true > 0 for true in names),
    }


async def sentences(vocabulary: Sequence[str], random: Random, pairs: int) -> Figures:
    """Put one new sentence into each text, and see whether it is redundant and where new text is told."""
    redundant, off, amounts = 0, [], []
    for number in range(pairs):
        match, size = Matching.new(), random.choice(_SIZES)
        text = random.choices(vocabulary, k=size // 6)
        sentence = [f"n{each}" for each in random.choices(vocabulary, k=9)]
        while not _SENTENCE[0] <= len(" ".join(sentence)) <= _SENTENCE[1]:
            sentence = [f"n{each}" for each in random.choices(vocabulary, k=random.randint(8, 14))]
        at = random.randrange(len(text))
        await match.verdict(document(Text(f"old{number}", " ".join(text))))
        said = await match.verdict(document(Text(f"new{number}", " ".join([*text[:at], *sentence, *text[at:]]))))
        if said is None or isinstance(said.novel, UnsetType) or isinstance(said.novel_spans, UnsetType):
            continue
        redundant += said.redundant is True
        amounts.append(abs(said.novel.value - len(" ".join(sentence))))
        off.append(abs(said.novel_spans[0][0] - len(" ".join(text[:at]))) if said.novel_spans else size)
    return {"pairs": pairs, "redundant": redundant, "place_off": median(off), "amount_off": median(amounts)}


def lost(older: Sequence[str], newer: Sequence[str]) -> bytearray:
    """Mark the characters of the words of one text that an edit into another takes out, but for moved ones."""
    runs, taken = Runs(), bytearray(len(older))
    runs.new(newer)
    for edit in Indel.opcodes(older, newer):
        if edit.tag == "delete":
            taken[edit.src_start : edit.src_end] = b"\1" * (edit.src_end - edit.src_start)
    marks = zip(older, taken, runs.known(older), strict=True)
    return bytearray().join(bytes([is_taken & ~is_moved]) * (len(word) + 1) for word, is_taken, is_moved in marks)


def covered(marks: bytearray, spans: Sequence[Place] | UnsetType) -> tuple[int, int, int]:
    """Return how many marked characters lie in spans, how many there are, and how many the spans have."""
    told = [] if isinstance(spans, UnsetType) else spans
    return sum(sum(marks[slice(*span)]) for span in told), sum(marks), sum(end - start for start, end in told)


def coverage(found: Sequence[tuple[int, int, int]]) -> Figures:
    """Return how much of what changed lies in spans, over all characters and as the mean of the pairs."""
    inside, marked, told = map(sum, zip(*found, strict=True))
    shares = [some / of for some, of, _ in found if of]
    return {"covered": share(inside, marked), "of_pair": round(fmean(shares), 4), "precision": share(inside, told)}


async def revisions(texts: Mapping[str, Text], pairs: Sequence[Pair], together: int) -> Figures:
    """Compare the places in verdicts about labelled revisions with what an edit of words takes out and puts in.

    Each document has the texts of at least `together` revisions.
    """
    removed, new = [], []
    related = [pair for pair in pairs if pair.origin.startswith("git-revision") and pair.relation in CHANGED]
    for at in range(step := len(related) // together):
        some = [sorted((texts[pair.a], texts[pair.b]), key=lambda text: text.when or 0) for pair in related[at::step]]
        both = ["\n\n".join(text.text for text in side) for side in zip(*some, strict=True)]
        match = Matching.new()
        _, said = [await match.verdict(document(Text(f"state{state}", text))) for state, text in enumerate(both)]
        if said is not None and said.of is not None:
            older, newer = map(words, both)
            removed.append(covered(lost(older, newer), said.removed_spans))
            new.append(covered(lost(newer, older), said.novel_spans))
    return {"pairs": len(new), "removed": coverage(removed), "new": coverage(new)} if new else {"pairs": 0}


async def measured(texts: Sequence[Text], pairs: Sequence[Pair], options: argparse.Namespace) -> Figures:
    """Return all figures."""
    random = Random(options.seed)
    drawn = random.sample(texts, min(options.documents, len(texts)))
    known = {text.id: text for text in texts}
    known_pairs = [pair for pair in pairs if pair.a in known and pair.b in known]
    vocabulary = sorted({word for text in drawn[:200] for word in words(text.text) if word.isalpha()})
    return {
        "stream": await stream(list(map(document, drawn))),
        **{name: await stream(documents) for name, documents in made(options.seed).items()},
        "sentences": await sentences(vocabulary, random, options.pairs),
        "labelled revisions": await revisions(known, known_pairs, 1),
        "twelve revisions": await revisions(known, known_pairs, 12),
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code.

    0 means that everything was measured, 2 that an input is unreadable.
    """
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--corpus", type=Path, required=True, help="directory with docs.jsonl.gz")
    parser.add_argument("--documents", type=positive, default=4_000, metavar="N", help="documents of the stream")
    parser.add_argument("--pairs", type=positive, default=1_000, metavar="N", help="texts with a new sentence")
    parser.add_argument("--seed", type=int, default=1)
    add_option(parser)
    options = parser.parse_args(arguments)
    try:
        pairs = read_pairs(options.corpus)
        texts = [text for text in read_texts(options.corpus).values() if 50 < len(text.text) <= LARGEST]
    except CorpusError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    with through(options.through):
        print(json.dumps(asyncio.run(measured(texts, pairs, options)), indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
