"""Families of labelled documents, in several orders of arrival."""

import asyncio
import random
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import comb

import msgspec

from benchmarks.families.feeding import KEY, SCHEME, Fed, feed
from benchmarks.quality.corpus import RELATED, RELATIONS, Pair, Text, document, share
from benchmarks.quality.labels import Measured, label
from benchmarks.quality.scoring import Figures
from benchmarks.quality.strata import LONG_CHARACTERS
from benchmarks.storing import new_store
from nearstream.schemas.documents.signature import Signature
from nearstream.streams.estimates.comparing import estimate
from nearstream.streams.relations.rules import decide
from nearstream.streams.relations.thresholds import DEFAULT_THRESHOLDS
from nearstream.streams.relations.verdict import is_copy
from nearstream.streams.signing.signer import Signer
from nearstream.streams.store.limits import IndexLimits

_SAMPLED = 3_000  # pairs of one family that are compared and measured


@dataclass(frozen=True)
class Labelled:
    """Signed documents with the labelled pairs among them."""

    texts: Mapping[str, Text]
    signatures: Mapping[str, Signature]
    pairs: Sequence[Pair]

    @classmethod
    def of(cls, texts: Mapping[str, Text], pairs: Sequence[Pair], most: int) -> "Labelled":
        """Sign up to `most` documents. Long and empty ones are left out."""
        signer = Signer(SCHEME, KEY)
        fit = [text for text in texts.values() if len(text.text) <= LONG_CHARACTERS]
        random.Random(1).shuffle(fit)
        found = {text.id: signer.sign(document(text)) for text in fit[:most]}
        found = {name: signature for name, signature in found.items() if signature.n_bytes}
        return cls(texts, found, [pair for pair in pairs if pair.a in found and pair.b in found])

    def arrivals(self, seed: int) -> list[Signature]:
        """Return the signatures in random order, observed one second after the other."""
        names = sorted(self.signatures)
        random.Random(seed).shuffle(names)
        return [
            msgspec.structs.replace(self.signatures[name], observed_at_ms=1_767_225_600_000 + 1_000 * at)
            for at, name in enumerate(names)
        ]

    def fed(self, seed: int) -> Fed:
        """Match the documents in a random order, one by one."""
        return asyncio.run(feed(self.arrivals(seed), new_store(SCHEME, IndexLimits(retention_seconds=0))))


def figures(labelled: Labelled, seeds: Sequence[int]) -> Figures:
    """Return the figures of each order, and of the agreement between orders."""
    runs = [labelled.fed(seed) for seed in seeds]
    return {
        "by_seed": {
            str(seed): {**of_run(labelled, run), **within(labelled, run.families)}
            for seed, run in zip(seeds, runs, strict=True)
        },
        "agreement": [
            {**agreement(one.families, other.families), "differing": differing(labelled.pairs, one, other)}
            for one, other in combinations(runs, 2)
        ],
    }


def of_run(labelled: Labelled, fed: Fed) -> Figures:
    """Return the figures of one run."""
    verdicts = Counter(verdict.verdict for verdict in fed.verdicts.values())
    return {**fed.figures(), "pairs": connected(labelled.pairs, fed), "verdicts": dict(verdicts.most_common())}


def differing(pairs: Sequence[Pair], one: Fed, other: Fed) -> float | None:
    """Return the share of the related pairs that only one of two orders connects."""
    related = [(pair.a, pair.b) for pair in pairs if pair.relation in RELATED]
    return share(sum(one.connects(*both) != other.connects(*both) for both in related), len(related))


def connected(pairs: Sequence[Pair], fed: Fed) -> Figures:
    """Return how many labelled pairs an event connects, directly or through families."""
    groups = {"related": [pair for pair in pairs if pair.relation in RELATED]}
    groups |= {name: [pair for pair in pairs if pair.relation == name] for name in RELATIONS}
    return {
        name: {
            "n": len(each),
            "direct": share(sum(frozenset((pair.a, pair.b)) in fed.paired for pair in each), len(each)),
            "connected": share(sum(fed.connects(pair.a, pair.b) for pair in each), len(each)),
            "one_family": share(sum(fed.families[pair.a] == fed.families[pair.b] for pair in each), len(each)),
        }
        for name, each in groups.items()
    }


def within(labelled: Labelled, families: Mapping[str, str]) -> Figures:
    """Return what pairs of documents in one family are to each other, in a sample."""
    chosen = sampled(families)
    copies = sum(_is_copy(labelled.signatures[a], labelled.signatures[b]) for a, b in chosen)
    measured = {name: Measured.of(labelled.texts[name].text) for both in chosen for name in both}
    labels = Counter(label(measured[a], measured[b]) for a, b in chosen)
    return {
        "in_one_family": {
            "sampled": len(chosen),
            "copies": share(copies, len(chosen)),
            "unrelated": share(labels["unrelated"], len(chosen)),
            "labels": dict(labels.most_common()),
        }
    }


def sampled(families: Mapping[str, str]) -> list[tuple[str, str]]:
    """Draw pairs of documents that are in one family."""
    members: defaultdict[str, list[str]] = defaultdict(list)
    for name, family in families.items():
        members[family].append(name)
    pairs = [both for each in members.values() for both in combinations(sorted(each), 2)]
    return random.Random(1).sample(pairs, min(_SAMPLED, len(pairs)))


def _is_copy(one: Signature, other: Signature) -> bool:
    kept = SCHEME.kept(one), SCHEME.kept(other)
    return is_copy(decide(estimate(*kept), DEFAULT_THRESHOLDS))


def agreement(one: Mapping[str, str], other: Mapping[str, str]) -> Figures:
    """Return how far two partitions of the same documents agree.

    Rand is the share of pairs that both put together or both apart. Jaccard is the share of pairs that both put
    together, among those that at least one does.
    """
    both, first, second = (
        sum(comb(n, 2) for n in Counter(of).values())
        for of in (((one[name], other[name]) for name in one), one.values(), other.values())
    )
    every = max(comb(len(one), 2), 1)
    rand = (every + 2 * both - first - second) / every
    return {"rand": round(rand, 6), "jaccard": share(both, first + second - both)}
