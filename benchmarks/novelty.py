"""Measure what verdicts say is new against exact novelty by brute force.

    python -m benchmarks.novelty --corpus DIR [--documents N] [--pairs N] [--seed N] [--mail PREFIX]
                                 [--through memory|redis]

Documents of the corpus are matched in a random order, its mails by themselves, and the four streams of
`benchmarks.stream`. Exactly new is what lies outside of every run of eight words that an earlier document has. Beside
them are `added` of the labelled pairs, pairs with one new sentence of 60 to 120 characters in texts of 1 to 60 KB, and
copies in capitals with other signs. Prints one JSON object. The exit code is 2 if the corpus is unreadable.
"""

import argparse
import asyncio
import json
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from pathlib import Path
from random import Random
from statistics import fmean, median

from msgspec import UnsetType

from benchmarks.quality.corpus import CorpusError, Pair, Text, document, read_pairs, read_texts, share, words
from benchmarks.quality.retrieval import BEGIN
from benchmarks.quality.scoring import Figures
from benchmarks.speed.measure import positive
from benchmarks.storing import add_option, new_store, through
from benchmarks.stream.prose import Prose, sources
from benchmarks.stream.texts import STREAMS
from nearstream.schemas.documents.document import Document
from nearstream.schemas.verdicts.verdict import DocumentVerdict
from nearstream.streams.estimates.passages import cover
from nearstream.streams.fingerprints.hashing import HashKey
from nearstream.streams.matching import telling
from nearstream.streams.matching.counterpart import covers_of, novelty_of
from nearstream.streams.matching.matcher import Matcher
from nearstream.streams.relations.novelty import Source, novelty
from nearstream.streams.signing.scheme import DEFAULT_LABEL, preset
from nearstream.streams.signing.signer import Signer
from nearstream.streams.store.limits import IndexLimits

RUN_WORDS = 8
SECOND = timedelta(seconds=1)
LARGEST = 60_000  # characters of a text
STREAMED = 1_500  # documents of each made stream
_SENTENCE = (60, 120)
_SIZES = (1_000, 4_000, 16_000, 60_000)


@dataclass
class Matching:
    """A matcher in memory that counts the time for what is new."""

    signer: Signer
    matcher: Matcher
    novelty_seconds: float = 0.0
    seconds: float = 0.0

    @classmethod
    def new(cls) -> "Matching":
        """Begin with an empty index."""
        key = HashKey.public()
        scheme = preset(DEFAULT_LABEL, key)
        store = new_store(scheme, IndexLimits(retention_seconds=0))
        return cls(Signer(scheme, key), Matcher(store, scheme, key))

    async def verdict(self, one: Document) -> DocumentVerdict | None:
        """Match a document."""
        began = time.process_time()
        signature = self.signer.sign(one)
        matched = await self.matcher.match(signature) if signature.n_bytes else None
        self.seconds += time.process_time() - began
        return matched.verdict if matched else None

    def count(self) -> None:
        """Count the time of what is new from now on."""

        def counted(function: Callable[..., object], *arguments: object) -> object:
            began = time.process_time()
            found = function(*arguments)
            self.novelty_seconds += time.process_time() - began
            return found

        for function in (covers_of, novelty_of):
            vars(telling)[function.__name__] = partial(counted, function)


@dataclass
class Runs:
    """All runs of eight words that were seen."""

    seen: set[int] = field(default_factory=set)

    def new(self, text: Sequence[str]) -> int:
        """Return the characters of the words of a text that are in no run that was seen, then see its runs."""
        runs = [hash(tuple(text[at : at + RUN_WORDS])) for at in range(len(text) - RUN_WORDS + 1)]
        known = bytearray(len(text))
        for at, run in enumerate(runs):
            if run in self.seen:
                known[at : at + RUN_WORDS] = b"\1" * RUN_WORDS
        self.seen.update(runs)
        return sum(len(word) + 1 for word, is_known in zip(text, known, strict=True) if not is_known)


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


def pairs_of_labels(texts: Mapping[str, Text], pairs: Sequence[Pair]) -> Figures:
    """Compare `added` of related labelled pairs with what is exactly new in the second of them."""
    match, errors, held = Matching.new(), [], []
    for pair in pairs:
        one, other = (match.signer.sign(document(texts[name])) for name in (pair.a, pair.b))
        if pair.relation == "unrelated" or not one.n_bytes or not other.n_bytes:
            continue
        (covered,) = cover(other, [one])
        found, runs = novelty(other, [Source(one, covered, is_common=False)]).added, Runs()
        runs.new(words(texts[pair.a].text))
        true = runs.new(words(texts[pair.b].text))
        if found is None:
            raise AssertionError("what was compared has an amount")
        errors.append(abs(found.value - true) / other.characters)
        held.append(found.low - 1 <= true <= found.high + 1)
    return {"pairs": len(errors), "error": round(fmean(errors), 4), "in_band": share(sum(held), len(held))}


async def stream(documents: Sequence[Document]) -> Figures:
    """Compare what verdicts say of documents with what is exactly new in them."""
    match, runs = Matching.new(), Runs()
    match.count()
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
        "share_of_time": share(match.novelty_seconds, match.seconds),
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


async def copies(texts: Sequence[Text]) -> Figures:
    """Match copies in another layout, each after its original."""
    match, told = Matching.new(), 0
    for text in texts:
        await match.verdict(document(text))
        said = await match.verdict(document(Text(f"{text.id} copy", "\n ".join(text.text.split()))))
        told += said is not None and said.redundant is True
    return {"copies": len(texts), "redundant": share(told, len(texts))}


async def measured(texts: Sequence[Text], pairs: Sequence[Pair], options: argparse.Namespace) -> Figures:
    """Return all figures."""
    random = Random(options.seed)
    drawn = random.sample(texts, min(options.documents, len(texts)))
    mails, known = [text for text in drawn if text.source.startswith(options.mail)], {text.id: text for text in texts}
    vocabulary = sorted({word for text in drawn[:200] for word in words(text.text) if word.isalpha()})
    return {
        "stream": await stream(list(map(document, drawn))),
        "real mail": await stream(list(map(document, mails))) if mails else None,
        **{name: await stream(documents) for name, documents in made(options.seed).items()},
        "pairs": pairs_of_labels(known, [pair for pair in pairs if pair.a in known and pair.b in known]),
        "sentences": await sentences(vocabulary, random, options.pairs),
        "copies": await copies(drawn[:300]),
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
    parser.add_argument("--mail", default="sa-", metavar="PREFIX", help="how the sources of mails begin (default sa-)")
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
