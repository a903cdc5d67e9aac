"""Measure how edited copies of texts without spaces are found and judged.

    python -m benchmarks.cjk [--json] [--pairs N] [--lengths N ...] [--through memory|redis]

Chinese and Japanese texts of the repository are cut into pieces and edited in known ways, also under schemes with other
numbers. Two texts meet if they share a key, whatever the size of the index. Relations and distances are those of the
matcher. Uses no network and fixed seeds.
"""

import argparse
import asyncio
import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from random import Random
from statistics import fmean

from benchmarks.cjk.judged import KEY, STANDARD, Judged, Row, document, judge, met, row
from benchmarks.cjk.texts import (
    KINDS,
    LANGUAGES,
    TextPair,
    edited,
    ending_in_a_spaceless_letter,
    mixed_pieces,
    pieces,
    without_breaks,
)
from benchmarks.quality.corpus import share
from benchmarks.speed.measure import positive
from benchmarks.storing import add_option, new_store, through
from nearstream.schemas.verdicts.events import Retraction, kind_of
from nearstream.streams.fingerprints.parameters import AnchorRules, LdRules, SketchRules, TextRules
from nearstream.streams.matching.matcher import Matcher
from nearstream.streams.signing.scheme import Scheme
from nearstream.streams.signing.signer import Signer

LENGTHS = (200, 500, 1_000, 2_000, 4_000, 8_000)
MIXED_SHARES = (0.02, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.5, 0.8)
SKETCH_WINDOWS = (9, 12, 15, 18, 24)
ANCHOR_WINDOWS = ((30, 2), (40, 1), (40, 2), (40, 4), (48, 2), (60, 2))
LD_WINDOWS = (12, 16, 24, 32, 48)
MIXED_SCHEMES = {
    "words": replace(STANDARD, text=TextRules(spaceless_share=0)),
    "windows": replace(STANDARD, text=TextRules(spaceless_share=4_096)),
}

_VARIED_MAX = 2_000  # longer texts take most of the time
_MIXED_CHARACTERS = 1_000
_EDITS = ("5 % replaced", "10 % replaced", "lines of 35", "30 % deleted", "30 % inserted", "passage of 50 %")
_PASSAGES = ("10 % replaced", "passage of 10 %", "passage of 20 %", "passage of 50 %", "with another")
_MIXED = ("5 % replaced", "10 % replaced", "30 % deleted", "30 % inserted", "passage of 20 %", "another")

Lengths = Sequence[int]
Sample = tuple[Lengths, int]


def by_edit(count: int, lengths: Lengths) -> list[Row]:
    """Measure the preset by language and edit, over all lengths."""
    rows = []
    for language in LANGUAGES:
        for kind in KINDS:
            pairs = list(_pairs(language, kind, lengths, count))
            unbroken = met(judge(map(without_breaks, pairs)))
            rows.append({"language": language, "edit": kind, **row(judge(pairs)), "meet without breaks": unbroken})
    return rows


def by_length(count: int, lengths: Lengths) -> list[Row]:
    """Measure the preset by length, over all edits and both languages."""
    kinds = [kind for kind in KINDS if kind != "another"]
    return [
        {"characters": length, **row(judge(pair for kind in kinds for pair in _of_both(kind, (length,), count)))}
        for length in lengths
    ]


def sketch_windows(count: int, lengths: Lengths) -> list[Row]:
    """Measure other widths of a shingle."""
    rows = []
    for width in SKETCH_WINDOWS:
        scheme = replace(STANDARD, sketch=SketchRules(window_bytes=width))
        rows.append(
            {"bytes": width, **_meetings(scheme, _EDITS, "bands", (lengths, count)), "strangers": strangers(scheme)}
        )
    return rows


def anchor_windows(count: int, lengths: Lengths) -> list[Row]:
    """Measure other widths and run lengths of anchor windows."""
    rows = []
    for width, factor in ANCHOR_WINDOWS:
        rules = AnchorRules(window_bytes=width, spaceless_factor=factor)
        scheme = replace(STANDARD, anchors=rules)
        rows.append(
            {
                "bytes": width,
                "run": rules.run * factor,
                "a KB": round(anchors_of_a_kilobyte(scheme), 1),
                **_meetings(scheme, _PASSAGES, "anchors", (lengths, count)),
                "strangers": strangers(scheme),
            }
        )
    return rows


def ld_windows(count: int, lengths: Lengths) -> list[Row]:
    """Measure other widths of an LD window, with unchanged thresholds."""
    rows = []
    for width in LD_WINDOWS:
        scheme = replace(STANDARD, ld=LdRules(window_bytes=width))
        with _window_of(width):
            found = {kind: judge(_of_both(kind, _varied(lengths), count), scheme) for kind in KINDS}
            rows.append({"bytes": width, **{kind: _right_and_error(each) for kind, each in found.items()}})
    return rows


def mixed(count: int) -> list[Row]:
    """Measure texts partly in English, signed as words or as windows.

    `differ` is the share of pairs of which the preset signs one as words and the other as windows.
    """
    rows = []
    for part in MIXED_SHARES:
        found: Row = {"share": part}
        for kind in _MIXED:
            pairs = edited(mixed_pieces(part, _MIXED_CHARACTERS), kind, count)
            marked = [ending_in_a_spaceless_letter(pair) for pair in pairs]
            found |= {f"{kind}, {form}": met(judge(marked, scheme)) for form, scheme in MIXED_SCHEMES.items()}
            said = [each.said for each in judge(pairs)]
            found[f"{kind}, differ"] = share(sum(x.newer.spaceless != x.older.spaceless for x in said), len(said))
        rows.append(found)
    return rows


def strangers(scheme: Scheme, characters: int = 1_000) -> str:
    """Count the pairs of unrelated pieces that share a key.

    Returns:
        A text such as "3 of 100", of all pairs within each language.
    """
    signer, shared, all_pairs = Signer(scheme, KEY), 0, 0
    for language in LANGUAGES:
        found = [signer.sign(document("a", "".join(each))) for each in pieces(language, characters)]
        keys = [scheme.keys(each, KEY) for each in found]
        sets = [{*each.bands, *each.anchors} for each in keys]
        shared += sum(not one.isdisjoint(other) for at, one in enumerate(sets) for other in sets[:at])
        all_pairs += len(sets) * (len(sets) - 1) // 2
    return f"{shared} of {all_pairs}"


def anchors_of_a_kilobyte(scheme: Scheme) -> float:
    """Return the mean anchors of a KB, over pieces of 2,000 characters."""
    signer = Signer(scheme, KEY)
    found = [signer.sign(document("a", "".join(each))) for name in LANGUAGES for each in pieces(name, 2_000)]
    return sum(len(each.anchors) // 8 for each in found) / sum(each.n_bytes for each in found) * 1_000


async def arriving(language: str, characters: int) -> Row:
    """Match originals, then an edited copy of each, one by one.

    Counts the events that name a copy with its original, the right ones, and those that name other documents, except
    for overlaps, because the pieces share passages.
    """
    matcher, signer, random = Matcher(new_store(STANDARD), STANDARD, KEY), Signer(STANDARD, KEY), Random(characters)
    found = pieces(language, characters)
    names = [random.choice([name for name in KINDS if name not in ("with another", "another")]) for _ in found]
    for at, own in enumerate(found):
        await matcher.match(signer.sign(document(str(at), "".join(own))))
    reported = right = others = 0
    for at, (own, name) in enumerate(zip(found, names, strict=True)):
        edit, relations = KINDS[name]
        text = edit(random, own, ("。", *found[at - len(found) // 2]))
        matched = await matcher.match(signer.sign(document(f"{at}-copy", text)))
        about = {each.older.id: kind_of(each) for each in matched.events if not isinstance(each, Retraction)}
        relation = about.pop(str(at), None)
        reported, right, others = (
            reported + (relation is not None),
            right + (relation in relations),
            others + sum(relation != "overlap" for relation in about.values()),
        )
    return {
        **{"language": language, "characters": characters, "copies": len(found)},
        **{"told": share(reported, len(found)), "right": share(right, len(found)), "about others": others},
    }


def measure(count: int, lengths: Lengths) -> dict[str, list[Row]]:
    """Measure all tables.

    `count` is the number of pairs of each language, length and edit.
    """
    return {
        "by edit": by_edit(count, lengths),
        "by length": by_length(count, lengths),
        "one by one": [asyncio.run(arriving(name, length)) for name in LANGUAGES for length in lengths],
        "shingles of other widths, share that meets in a band": sketch_windows(count, lengths),
        "anchor windows of other widths, share that shares an anchor": anchor_windows(count, lengths),
        "LD windows of other widths, right relation / error of the distance": ld_windows(count, lengths),
        "texts partly English, share that meets": mixed(5 * count),
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Print tables, or one JSON object with `--json`."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.cjk", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument(
        "--pairs", type=positive, default=20, metavar="N", help="pairs of each language, length and edit"
    )
    parser.add_argument(
        "--lengths", type=positive, nargs="+", default=LENGTHS, metavar="N", help="lengths of a piece in characters"
    )
    add_option(parser)
    options = parser.parse_args(arguments)
    with through(options.through):
        found = measure(options.pairs, options.lengths)
    if options.json:
        print(json.dumps({"scheme": STANDARD.name, **found}, indent=1, ensure_ascii=False))
    else:
        print("\n\n".join(table(name, rows) for name, rows in found.items()))
    return 0


def table(name: str, rows: Sequence[Row]) -> str:
    """Format rows with equal fields as a Markdown table with a title."""
    lines = [list(rows[0]), ["---"] * len(rows[0]), *([str(value) for value in each.values()] for each in rows)]
    return "\n".join([f"**{name}**", "", *(f"| {' | '.join(line)} |" for line in lines)])


def _pairs(language: str, kind: str, lengths: Iterable[int], count: int) -> Iterator[TextPair]:
    for length in lengths:
        yield from edited(pieces(language, length), kind, count)


def _of_both(kind: str, lengths: Iterable[int], count: int) -> list[TextPair]:
    return [pair for language in LANGUAGES for pair in _pairs(language, kind, lengths, count)]


def _varied(lengths: Lengths) -> list[int]:
    return [length for length in lengths if length <= _VARIED_MAX]


def _meetings(scheme: Scheme, kinds: Iterable[str], by: str, pairs: Sample) -> Row:
    lengths, count = pairs
    return {kind: row(judge(_of_both(kind, _varied(lengths), count), scheme))[by] for kind in kinds}


def _right_and_error(judged: Sequence[Judged]) -> str:
    right = fmean(each.said.verdict.relation in each.pair.relations for each in judged)
    return f"{right:.3f} / {fmean(abs(each.error) for each in judged):.4f}"


@contextmanager
def _window_of(width: int) -> Iterator[None]:
    """Let the estimates assume LD windows of another width.

    No scheme of this version has such windows.
    """
    estimates = [module for name, module in sys.modules.items() if name.startswith("nearstream.streams.estimates.")]
    modules = [module for module in estimates if "LD_WINDOW_BYTES" in vars(module)]
    try:
        for module in modules:
            vars(module)["LD_WINDOW_BYTES"] = width
        yield
    finally:
        for module in modules:
            vars(module)["LD_WINDOW_BYTES"] = LdRules().window_bytes


if __name__ == "__main__":
    sys.exit(main())
