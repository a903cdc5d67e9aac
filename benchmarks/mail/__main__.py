"""Measure copies and false copies among mails.

    python -m benchmarks.mail --corpus DIR [--scheme S ...] [--spam PREFIX] [--ham PREFIX] [--spams N] [--stream N]

Prints one JSON object for each scheme. Mails are chosen by the beginning of their ids. The exit code is 2 when an input
cannot be read. Uses no network and no service.
"""

import argparse
import asyncio
import json
import random
import re
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np

from benchmarks.mail.personal import personalised
from benchmarks.quality.accuracy import sign
from benchmarks.quality.corpus import CorpusError, Pair, Text, read_pairs, read_texts, share, words
from benchmarks.speed.measure import positive
from benchmarks.stream.prose import Prose
from benchmarks.stream.texts import Record, mail
from nearstream.schemas.documents.document import Document
from nearstream.schemas.documents.signature import Signature
from nearstream.schemas.verdicts.verdict import DocumentVerdict
from nearstream.streams.estimates.comparing import estimate
from nearstream.streams.fingerprints.hashing import HashKey
from nearstream.streams.fingerprints.rewriting import rewritten
from nearstream.streams.matching.matcher import Matcher
from nearstream.streams.relations.thresholds import Thresholds
from nearstream.streams.relations.verdict import relate
from nearstream.streams.signing.scheme import DEFAULT_LABEL, LABELS, Scheme, preset
from nearstream.streams.signing.signer import Signer
from nearstream.streams.store.store import local_store

KEY = HashKey.public()
SEED = 1
_WORD = re.compile(r"\w+")
COPIES = ("exact_duplicate", "near_duplicate")
_WORDS_MIN = 50  # of a spam, below which a personalised footer is most of it
_RESEMBLANCE = 0.8
_CANDIDATE = 0.5  # least share of equal slots, below which no rule calls two mails copies
_RAW = 0.5  # a pair whose true resemblance is below is no pair of copies
_START = datetime(2026, 1, 1, tzinfo=UTC)


def copies_found(spams: Sequence[Text], scheme: Scheme, *, with_names: bool) -> dict[str, object]:
    """Return how many personalised copies resemble each other, and how many an index finds.

    Of each spam two copies are made. All first copies are admitted, then each second one is looked for.
    """
    draw, signer = random.Random(SEED), Signer(scheme, KEY)
    sides: list[list[Signature]] = [[], []]
    for spam in spams:
        for side, signed in enumerate(sides):
            text = personalised(spam.text, draw, with_names=with_names)
            signed.append(signer.sign(Document(id=f"{side} {spam.id}", text=text, observed_at=_START)))
    pairs = list(zip(*sides, strict=True))
    alike = sum(estimate(*pair).sketch_resemblance >= _RESEMBLANCE for pair in pairs)
    return {
        "pairs": len(pairs),
        f"resemblance >= {_RESEMBLANCE}": share(alike, len(pairs)),
        "found as copies": share(asyncio.run(_found(pairs, scheme)), len(pairs)),
    }


async def _found(pairs: Sequence[tuple[Signature, ...]], scheme: Scheme) -> int:
    matcher = Matcher(local_store(), scheme, KEY, Thresholds())
    for first, _ in pairs:
        await matcher.match(first)
    verdicts = [(await matcher.match(second)).verdict for _, second in pairs]
    return sum(verdict is not None and verdict.verdict in COPIES for verdict in verdicts)


def false_copies(mails: Sequence[Text], scheme: Scheme) -> dict[str, object]:
    """Return the share of pairs that are taken for copies, though few of their words are common.

    Every pair is judged by its sketches, and those that have half of their slots in common by all rules.
    """
    signed = sign(mails, scheme, KEY)
    known = [text for text in mails if text.id in signed and signed[text.id].words >= scheme.bands.min_words]
    sketches = np.array([np.frombuffer(signed[text.id].sketch, dtype="<u4") for text in known])
    alike, called, n_copies = 0, 0, 0
    for number, text in enumerate(known[:-1]):
        equal = (sketches[number + 1 :] == sketches[number]).mean(axis=1)
        for later in np.flatnonzero(equal >= _CANDIDATE).tolist():
            other = known[number + 1 + later]
            newer, older = signed[other.id], signed[text.id]
            is_copy = relate(newer, older, estimate(newer, older)).relation in COPIES
            n_copies += is_copy
            if true_resemblance(text.text, other.text) < _RAW:
                alike += bool(equal[later] >= _RESEMBLANCE)
                called += is_copy
    n_pairs = len(known) * (len(known) - 1) // 2
    return {
        "mails": len(known),
        "pairs": n_pairs,
        "called copies": n_copies,
        f"false, resemblance >= {_RESEMBLANCE}": alike,
        "false, called copies": called,
        "false share": called / n_pairs if n_pairs else None,
    }


def true_resemblance(one: str, other: str) -> float:
    """Return the resemblance of the unmasked 3-word shingles of two texts."""
    first, second = (set(zip(found, found[1:], found[2:], strict=False)) for found in map(words, (one, other)))
    return len(first & second) / max(1, len(first | second))


def replies(pairs: Sequence[Pair], texts: dict[str, Text], scheme: Scheme) -> dict[str, object]:
    """Return what replies that are labelled otherwise are to the mail that they answer."""
    answered = [pair for pair in pairs if pair.origin == "reply"]
    signed = sign([texts[name] for name in {name for pair in answered for name in (pair.a, pair.b)}], scheme, KEY)
    others = [pair for pair in answered if pair.relation not in COPIES and {pair.a, pair.b} <= signed.keys()]
    relations = Counter[str](
        relate(signed[pair.b], signed[pair.a], estimate(signed[pair.a], signed[pair.b])).relation for pair in others
    )
    called = sum(relations[name] for name in COPIES)
    return {"replies": len(others), "called copies": called, "share": share(called, len(others)), "all": relations}


def stream(texts: dict[str, Text], scheme: Scheme, count: int) -> dict[str, object]:
    """Return the verdicts of the benchmark stream of mails: campaigns and notices, and replies.

    Of replies that are called copies, it also returns the least true resemblance to the other mail.
    """
    records = mail(Prose([text.text for text in texts.values()], SEED), count, SEED)
    by_key = {record.key: record.text for record in records}
    verdicts: dict[str, Counter[str]] = {"campaigns and notices": Counter(), "replies": Counter()}
    families, nearest = set(), 1.0
    for record, verdict in zip(records, asyncio.run(_verdicts(records, scheme)), strict=True):
        if verdict is None:
            continue
        kind = "campaigns and notices" if record.text.startswith("Dear ") else "replies"
        verdicts[kind][verdict.verdict] += 1
        if kind != "replies":
            families.add(verdict.family.id)
        elif verdict.verdict in COPIES and verdict.of:
            nearest = min(nearest, true_resemblance(record.text, by_key[verdict.of.id]))
    return {
        "mails": count,
        "families of campaigns and notices": len(families),
        "least true resemblance of replies called copies": round(nearest, 4),
        **verdicts,
    }


async def _verdicts(records: Sequence[Record], scheme: Scheme) -> list[DocumentVerdict | None]:
    matcher, signer = Matcher(local_store(), scheme, KEY, Thresholds()), Signer(scheme, KEY)
    found = []
    for number, record in enumerate(records):
        document = Document(id=record.key, text=record.text, observed_at=_START + timedelta(seconds=number))
        found.append((await matcher.match(signer.sign(document))).verdict)
    return found


def masking_time(mails: Sequence[Text]) -> dict[str, object]:
    """Return the time of masking over that of finding words with a regular expression, and that of signing.

    Each is the best of five runs, in turns.
    """
    rules, signer = preset("mail", KEY).text, Signer(preset(DEFAULT_LABEL, KEY), KEY)
    documents = [Document(id=text.id, text=text.text, observed_at=_START) for text in mails]
    jobs: dict[str, Callable[[], object]] = {
        "masking": lambda: [rewritten(text.text, rules) for text in mails],
        "words": lambda: [_WORD.findall(text.text) for text in mails],
        "signing": lambda: [signer.sign(document) for document in documents],
    }
    best = dict.fromkeys(jobs, float("inf"))
    for _ in range(5):
        for name, job in jobs.items():
            began = time.perf_counter()
            job()
            best[name] = min(best[name], time.perf_counter() - began)
    return {
        "masking over finding words": round(best["masking"] / best["words"], 2),
        "masking over signing": round(best["masking"] / best["signing"], 2),
    }


def measure(options: argparse.Namespace) -> None:
    """Print the figures of each scheme."""
    texts, pairs = read_texts(options.corpus), read_pairs(options.corpus)
    spams = [text for text in texts.values() if text.id.startswith(options.spam)]
    long = [text for text in spams if len(text.text.split()) >= _WORDS_MIN][: options.spams]
    hams = [text for text in texts.values() if text.id.startswith(options.ham)]
    for label in options.scheme:
        scheme = preset(label, KEY)
        print(
            json.dumps(
                {
                    "scheme": scheme.name,
                    "personalised": copies_found(long, scheme, with_names=False),
                    "personalised with names": copies_found(long, scheme, with_names=True),
                    "ham": false_copies(hams, scheme),
                    "spam": false_copies(spams, scheme),
                    "time": masking_time(hams) if scheme.text.masks else None,
                    "replies": replies(pairs, texts, scheme),
                    "stream": stream(texts, scheme, options.stream),
                },
                indent=1,
            ),
            flush=True,
        )


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpus", type=Path, required=True)
    parser.add_argument("--scheme", nargs="+", choices=LABELS, default=["mail", DEFAULT_LABEL])
    parser.add_argument("--spam", default="sa-a/spam", help="beginning of the ids of bulk mail")
    parser.add_argument("--ham", default="sa-a/easy-ham", help="beginning of the ids of other mail")
    parser.add_argument("--spams", type=positive, default=300, help="spams that are personalised")
    parser.add_argument("--stream", type=positive, default=2000, help="mails of the stream")
    try:
        measure(parser.parse_args(arguments))
    except CorpusError as error:
        print(error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
