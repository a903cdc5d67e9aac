"""Cases 9 and 10: form letters and replies."""

from collections.abc import Sequence

from benchmarks.judgement.cases import NAMES, Case, Expected, Material, Stream, couple, each, in_turn, related
from benchmarks.judgement.judges import holds_older, is_as_defined, is_in_band

_LINE = 12  # words of a quoted line


def form_letters(material: Material) -> Stream:
    """Return two copies each of letters of 100 to 500 words, with names, numbers and links every 8 to 40 words."""

    def pair(number: int) -> Expected:
        words, step = material.words(material.draw.randint(100, 500)), material.draw.uniform(8, 40)
        places = {place for place in range(len(words)) if material.draw.random() < 1 / step}
        return couple(number, _personal(material, words, places), _personal(material, words, places))

    return in_turn(map(pair, range(material.pairs)), material.draw)


def replies(material: Material) -> Stream:
    """Return mails of 60 to 600 words, and replies that quote all of it and add 10 to 40 words at one end."""

    def pair(number: int) -> Expected:
        words, added = material.words(material.draw.randint(60, 600)), material.words(material.draw.randint(10, 40))
        quoted = ["> " + " ".join(words[start : start + _LINE]) for start in range(0, len(words), _LINE)]
        head = f"On 3 March 2026, {material.draw.choice(NAMES)} wrote:"
        parts = (" ".join(added), head, *quoted) if number % 3 else (head, *quoted, " ".join(added))
        return couple(number, " ".join(words), "\n".join(parts))

    return in_turn(map(pair, range(material.pairs)), material.draw)


def _personal(material: Material, words: Sequence[str], places: set[int]) -> str:
    """Return words with personal ones in some places, which are of one kind in all copies."""
    kinds = (_name, _number, _link)
    return " ".join(
        kinds[place % len(kinds)](material) if place in places else word for place, word in enumerate(words)
    )


def _name(material: Material) -> str:
    return material.draw.choice(NAMES)


def _number(material: Material) -> str:
    return f"{material.draw.randrange(1_000, 1_000_000)}"


def _link(material: Material) -> str:
    return f"https://shop.example/offer?id={material.draw.getrandbits(32):08x}"


CASES = (
    Case(
        9,
        "form letters",
        "near-duplicate, true distance",
        form_letters,
        (
            each("found", 0.95, related("near_duplicate", "version")),
            each("near-duplicate by definition", 0.95, is_as_defined),
            each("distance in its band", 0.85, is_in_band),
        ),
    ),
    Case(10, "replies with a whole quote", "containment", replies, (each("containment", 0.95, holds_older),)),
)
