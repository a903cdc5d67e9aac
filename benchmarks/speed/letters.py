"""Measure what reading letters as languages do costs, by script.

    python -m benchmarks.speed.letters [--repeats N]

Prints the nanoseconds of CPU time for one character of made-up words: signing under `standard`, `dense` and `letters`.
Uses no network and no service.
"""

import argparse
import random
from collections.abc import Sequence
from datetime import UTC, datetime

from benchmarks.speed.measure import Effort, effort_options, timed
from nearstream.schemas.documents.document import Document
from nearstream.streams.fingerprints.hashing import HashKey
from nearstream.streams.signing.scheme import preset
from nearstream.streams.signing.signer import Signer

_LABELS = ("standard", "dense", "letters")
_SEED = 1
_HAN = "".join(map(chr, range(0x4E00, 0x5120)))
# The letters of which words are made up, and what is between two of them.
_SCRIPTS = {
    "English": ("abcdefghijklmnop", " "),
    "German": ("abcdefghijklmnopäöüß", " "),
    "Turkish": ("abc\u00e7defg\u011fh\u0131ijkl", " "),
    "Russian": ("абвгдежзийклмнопрст", " "),
    "Greek": ("αβγδεζηάέήςλμν", " "),
    "Persian": ("ابپتثجچخدیک", " "),
    "Khmer": ("កខគឃងចឆជឈញដ", "\u200b"),
    "Korean": ("".join(map(chr, range(0xAC00, 0xAF20))), " "),
    "Chinese": (_HAN, "\uff0c"),
    "Chinese beside Latin": (_HAN, " python "),
}  # fmt: skip


def _made_up(letters: str, between: str) -> str:
    draw = random.Random(_SEED)
    return between.join("".join(draw.choices(letters, k=draw.randint(2, 9))) for _ in range(800))


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    effort_options(parser)
    effort = Effort.of(parser.parse_args(arguments))
    key = HashKey.public()
    signers = [Signer(preset(label, key), key) for label in _LABELS]
    print("script", *_LABELS, sep="\t")
    for script, (letters, between) in _SCRIPTS.items():
        text = _made_up(letters, between)
        document = Document(id="a", text=text, observed_at=datetime(2026, 1, 1, tzinfo=UTC))
        times = (timed(signer.sign, [document], effort).us * 1000 / len(text) for signer in signers)
        print(script, *(f"{time:.0f}" for time in times), sep="\t")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
