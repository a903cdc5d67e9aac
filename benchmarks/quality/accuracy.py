"""Measure how accurate relations and estimates from signatures alone are.

    python -m benchmarks.quality.accuracy --corpus DIR [--predictions OUT.jsonl] [--keys N] [--through memory|redis]

Reads labelled pairs and prints one JSON object. The exit code is 2 when an input cannot be read. What is compared are
records of an index, in memory or in a Redis of its own. Uses no network and no lineage. Pairs share documents, so
confidence intervals over them are too narrow.
"""

import argparse
import json
import sys
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from statistics import fmean, stdev

import numpy as np

from benchmarks.quality.corpus import (
    RELATED,
    CorpusError,
    Pair,
    Text,
    check,
    document,
    read_pairs,
    read_texts,
    share,
    words,
)
from benchmarks.quality.scoring import Figures, Judged, accuracy_by, confusion, distances, grouped, origin, scores
from benchmarks.storing import add_option, as_stored, through
from nearstream.schemas.documents.signature import Signature
from nearstream.schemas.topics.codec import InvalidMessageError, encode_signature
from nearstream.streams.estimates.comparing import estimate
from nearstream.streams.estimates.passages import common_text
from nearstream.streams.fingerprints.hashing import HashKey
from nearstream.streams.relations.thresholds import DEFAULT_THRESHOLDS
from nearstream.streams.relations.verdict import relate
from nearstream.streams.signing.scheme import DEFAULT_LABEL, Scheme, preset
from nearstream.streams.signing.signer import Signer

_ROUNDING = 5e-5  # a share of all slots has no exact decimal form, so bounds are compared with this tolerance


def sign(texts: Iterable[Text], scheme: Scheme, key: HashKey) -> dict[str, Signature]:
    """Return the signatures of the texts by id.

    Texts whose normal form is empty or too large have none.
    """
    signer, signed = Signer(scheme, key), {}
    for text in texts:
        try:
            signature = signer.sign(document(text))
        except InvalidMessageError:
            continue
        if signature.n_bytes:
            signed[text.id] = signature
    return signed


def judge(pair: Pair, signed: Mapping[str, Signature]) -> Judged:
    """Return the estimate and the verdict of one pair."""
    a, b = signed.get(pair.a), signed.get(pair.b)
    if a is None or b is None:
        return Judged(pair)
    newer, older = sorted((a, b), key=lambda each: (each.observed_at_ms, each.id, each.version), reverse=True)
    numbers = estimate(newer, older)
    verdict = relate(newer, older, numbers)
    inside = {"newer": newer.id, "older": older.id, None: None}[verdict.inner]
    distance, low, high = (round(each) for each in (numbers.distance, numbers.low, numbers.high))
    longer_is_a, is_near = a.digest != numbers.shorter_digest, "near_threshold" in verdict.low_confidence
    segment = common_text(newer, older).segment if verdict.relation == "containment" else None
    said = verdict.relation, verdict.rule, distance, low, high, inside, numbers, longer_is_a, is_near, segment
    return Judged(pair, *said)


def place_errors(rows: Sequence[Judged], texts: Mapping[str, Text]) -> Figures:
    """Return how far the estimated positions of contained texts are off.

    The error of one containment is that of the worse end of its span, in characters of the outer text.
    `overlap_over_union` is the median overlap of the estimated and the true span, over their union.
    """
    errors, agreement = [], []
    for row in rows:
        found = row.segment
        if row.pair.relation != "containment" or row.relation != "containment" or found is None:
            continue
        outer_is_a = row.pair.inside == row.pair.b
        estimated = found.longer if outer_is_a == row.longer_is_a else found.shorter
        details = row.pair.details
        outer = texts[row.pair.a if outer_is_a else row.pair.b]
        true = _characters(outer.text, details.place_a if outer_is_a else details.place_b)
        errors.append(max(abs(estimated[0] - true[0]), abs(estimated[1] - true[1])))
        common = min(estimated[1], true[1]) - max(estimated[0], true[0])
        agreement.append(max(0, common) / (max(estimated[1], true[1]) - min(estimated[0], true[0])))
    if not errors:
        return {"n": 0}
    median, tail = np.quantile(errors, (0.5, 0.9))
    both = round(float(np.median(agreement)), 4)
    return {"n": len(errors), "median": float(median), "p90": float(tail), "overlap_over_union": both}


def _characters(text: str, span: tuple[int, int]) -> tuple[int, int]:
    """Convert a span of words to characters, with one space between words."""
    ends = np.cumsum([len(word) + 1 for word in words(text)])
    return int(ends[span[0] - 1]) if span[0] else 0, int(ends[span[1] - 1]) - 1


def coverage(rows: Sequence[Judged]) -> Figures:
    """Return how often the true value lies in its interval.

    Intervals of resemblance and containment are meant to hold 95 % of the values, those of distances 90 %.
    """
    hits: defaultdict[str, list[bool]] = defaultdict(list)
    for row in rows:
        if row.numbers is None:
            continue
        details, numbers = row.pair.details, row.numbers
        alike = numbers.resemblance.low - _ROUNDING <= details.J <= numbers.resemblance.high + _ROUNDING
        hits["resemblance_95"].append(alike)
        if details.J > 0.3:
            hits["resemblance_95_above_03"].append(alike)
        if row.pair.relation in RELATED - {"exact_duplicate"}:
            hits["distance_90"].append(row.low <= details.LD <= row.high)
            held = numbers.containment_shorter
            hits["containment_95"].append(held.low <= details.containment_of_shorter <= held.high)
    return {name: {"n": len(each), "share": share(sum(each), len(each))} for name, each in hits.items()}


def share_errors(rows: Sequence[Judged]) -> Figures:
    """Return the mean error of the estimated containments and resemblance.

    `..._by_symbols` and `..._by_sketch` are the errors of estimates from LD symbols or sketches alone.
    """
    errors: defaultdict[str, list[float]] = defaultdict(list)
    for row in rows:
        if row.numbers is None or row.pair.relation not in RELATED - {"exact_duplicate"}:
            continue
        details, numbers = row.pair.details, row.numbers
        shorter, longer = (details.Cb, details.Ca) if row.longer_is_a else (details.Ca, details.Cb)
        errors["containment_of_shorter"].append(abs(numbers.containment_shorter.value - shorter))
        errors["containment_of_longer"].append(abs(numbers.containment_longer.value - longer))
        errors["containment_of_shorter_by_symbols"].append(abs(numbers.order_free - shorter))
        errors["mean_resemblance"].append(abs(numbers.mean_resemblance - details.J))
        errors["resemblance_by_sketch"].append(abs(numbers.resemblance.value - details.J))
    return {name: round(fmean(each), 4) for name, each in errors.items()}


def measure(pairs: Sequence[Pair], texts: Mapping[str, Text], key: HashKey) -> tuple[list[Judged], Figures]:
    """Judge each pair under a key and measure what that costs."""
    scheme = preset(DEFAULT_LABEL, key)
    named = sorted({name for pair in pairs for name in (pair.a, pair.b)})
    began = time.process_time()
    signed = sign((texts[name] for name in named), scheme, key)
    between = time.process_time()
    kept = as_stored(signed, scheme, key)
    began_pairs = time.process_time()
    rows = [judge(pair, kept) for pair in pairs]
    ended = time.process_time()
    sizes = [len(encode_signature(signature)) for signature in signed.values()]
    symbols = [row.numbers.symbols_shorter for row in rows if row.numbers]
    return rows, {
        "documents": len(named),
        "signature_bytes": round(fmean(sizes)) if sizes else None,
        "symbols_of_shorter": round(fmean(symbols)) if symbols else None,
        "sign_seconds": round(between - began, 2),
        "cpu_microseconds_per_pair": round(1e6 * (ended - began_pairs) / max(len(rows), 1), 1),
    }


def report(pairs: Sequence[Pair], texts: Mapping[str, Text], key: HashKey) -> tuple[list[Judged], Figures]:
    """Return the judged pairs and all figures for one key."""
    rows, cost = measure(pairs, texts, key)
    scheme = preset(DEFAULT_LABEL, key)
    far = [row for row in rows if row.relation and row.pair.relation != "exact_duplicate"]
    by_relation = grouped(far, lambda row: row.pair.relation)
    return rows, {
        **scores(rows),
        "scheme": scheme.name,
        "thresholds": asdict(DEFAULT_THRESHOLDS),
        "confusion": confusion(rows),
        "by_origin": accuracy_by(rows, origin),
        "by_source": accuracy_by(rows, lambda row: "+".join(sorted(set(row.pair.src)))),
        "by_rule": accuracy_by(rows, lambda row: row.rule),
        "near_threshold": accuracy_by(rows, lambda row: str(row.is_near_threshold).lower()),
        "distance_by_relation": {name: distances(each) for name, each in by_relation.items()},
        "place": place_errors(rows, texts),
        "coverage": coverage(rows),
        "share_errors": share_errors(rows),
        **cost,
    }


def over_keys(pairs: Sequence[Pair], texts: Mapping[str, Text], count: int) -> Figures:
    """Return mean and standard deviation of each figure over derived keys."""
    drawn: defaultdict[str, list[float]] = defaultdict(list)
    for number in range(count):
        rows, _ = measure(pairs, texts, HashKey.from_secret(f"nearstream benchmark {number}".encode()))
        for name, figures in scores(rows).items():
            for figure, value in figures.items() if isinstance(figures, dict) else ():
                if isinstance(value, float):
                    drawn[f"{name}.{figure}"].append(value)
    summary = {
        name: {"mean": round(fmean(values), 4), "sd": round(stdev(values), 4) if len(values) > 1 else None}
        for name, values in drawn.items()
    }
    return {"n": count, **summary}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code.

    0 means that everything was measured, 2 that an input is unreadable.
    """
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--corpus", type=Path, required=True, help="directory with docs.jsonl.gz and pairs.jsonl.gz")
    parser.add_argument("--predictions", type=Path, help="write one JSON line for each pair to this file")
    parser.add_argument(
        "--keys", type=int, default=0, metavar="N", help="also print mean and spread over N other hash keys"
    )
    add_option(parser)
    options = parser.parse_args(arguments)
    try:
        pairs, texts = read_pairs(options.corpus), read_texts(options.corpus)
        check(pairs, texts)
    except CorpusError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    with through(options.through):
        rows, figures = report(pairs, texts, HashKey.public())
        if options.keys:
            figures["keys"] = over_keys(pairs, texts, options.keys)
    if options.predictions:
        lines = (json.dumps(row.line) + "\n" for row in rows if row.relation)
        options.predictions.write_text("".join(lines), encoding="utf-8")
    print(json.dumps(figures, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
