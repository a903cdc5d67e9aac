"""Estimates for pairs of texts with known edits."""

from pathlib import Path
from random import Random

import msgspec
import pytest
from msgspec.structs import replace as replace_fields
from rapidfuzz.distance import Levenshtein

from nearstream.schemas.documents.document import Document
from nearstream.streams.estimates.comparing import estimate
from nearstream.streams.estimates.estimate import Estimate, containment_share, resemblance_share, wilson
from nearstream.streams.estimates.passages import CommonText, common_text
from nearstream.streams.fingerprints.normalize import normalize
from nearstream.streams.relations.verdict import relate
from tests.support.made_up import sign, with_noise, words

LINES = (Path(__file__).parents[4] / "examples" / "documents.jsonl").read_bytes().splitlines()
TEXTS = {each.id: each.text for each in (msgspec.json.decode(line, type=Document) for line in LINES) if each.text}
SPEECHES = [TEXTS[name] for name in sorted(TEXTS) if name.startswith("sotu-") and name.count("-") == 2]


def of_texts(one: str, other: str) -> Estimate:
    return estimate(sign(one), sign(other, "b"))


def plain(text: str) -> str:
    return normalize(text).data.decode()


def places_of(one: str, other: str) -> CommonText:
    return common_text(sign(one), sign(other, "b"))


def error(one: str, other: str) -> float:
    """Return the error of the estimated distance, divided by the longer length."""
    one, other = plain(one), plain(other)
    truth = Levenshtein.distance(one, other)
    return abs(of_texts(one, other).distance - truth) / max(len(one), len(other))


@pytest.mark.parametrize("seed", range(5))
def test_a_passage_put_into_a_longer_text_is_located_within_five_rates(seed: int) -> None:
    host, passage = words(10 + seed, 3000), words(20 + seed, 300)
    text = " ".join(passage)
    start = len(" ".join(host[:1200])) + 1
    longer = " ".join([*host[:1200], *passage, *host[1200:]])
    places, rate = places_of(text, longer), of_texts(text, longer).rate
    segment = places.segment
    assert segment is not None
    assert segment.longer[0] == pytest.approx(start, abs=5 * rate)
    assert segment.longer[1] == pytest.approx(start + len(text), abs=5 * rate)
    assert segment.shorter[0] <= 5 * rate
    # A passage surely agrees, whereas the segment ends where agreement is only likely.
    (passage,) = places.in_order
    assert 0 <= passage.longer[0] - segment.longer[0] <= 5 * rate
    assert 0 <= segment.longer[1] - passage.longer[1] <= 5 * rate


def shingles(text: list[str]) -> set[tuple[str, ...]]:
    return {tuple(text[place : place + 5]) for place in range(len(text) - 4)}


@pytest.mark.parametrize("every", [12, 25, 60, 200])
def test_shared_shingles_are_told_from_windows_of_sixteen_bytes(every: int) -> None:
    text, edited = words(1, 2400), words(1, 2400)
    for place in range(7, 2400, every):
        edited[place] = f"new{place}"
    numbers = of_texts(" ".join(text), " ".join(edited))
    one, other = shingles(text), shingles(edited)
    assert numbers.shared == pytest.approx(len(one & other) / len(one), abs=0.06)
    assert numbers.mean_resemblance == pytest.approx(len(one & other) / len(one | other), abs=0.06)
    assert numbers.order_gap < 0.03


def shuffled(seed: int) -> tuple[str, str]:
    blocks = [text[2000:3500] for text in SPEECHES[seed % 6 : seed % 6 + 6]]
    return " ".join(blocks), " ".join(Random(seed).sample(blocks, len(blocks)))


def of_one_phrase() -> tuple[str, str]:
    """Return texts with a phrase in common, far away from each other."""
    one, other = words(1, 900), words(2, 900)
    one[100:112] = other[700:712] = words(3, 12)
    return " ".join(one), " ".join(other)


def with_others_passages() -> tuple[str, str]:
    """Return a text, and one with the passages of another one, of their lengths, instead of a quarter of its own."""
    one, other = (plain(SPEECHES[number])[:20_000] for number in (1, 8))
    places = range(0, 20_000, 1_000)
    return one, "".join((other if at % 4_000 == 0 else one)[at : at + 1_000] for at in places)


def replaced(seed: int, every: int) -> tuple[str, str]:
    """Return a text, and one in which one word of so many is another."""
    random, text, others = Random(seed), plain(SPEECHES[seed]).split()[:3000], iter(plain(SPEECHES[seed + 7]).split())
    return " ".join(text), " ".join(next(others) if random.random() < 1 / every else word for word in text)


def without_letters(text: str) -> str:
    random = Random(5)
    return "".join(letter for letter in text if letter == " " or random.random() > 0.03)


INSERTED, LONG = SPEECHES[3][2000:3500], " ".join(words(1, 2000))
DISTANCES = {  # pairs, the largest mean error of the estimated distance, whether the edits are of single characters
    "unrelated": ([(one[:9000], other[:9000]) for one, other in zip(SPEECHES[:6], SPEECHES[6:], strict=False)], 0.03),
    "a block put in": ([(each[:9000], f"{each[:4000]} {INSERTED} {each[4000:9000]}") for each in SPEECHES[8:14]], 0.01),
    "blocks moved": ([shuffled(seed) for seed in range(8)], 0.05),
    "one phrase in common": ([of_one_phrase()], 0.02),
    "passages replaced": ([with_others_passages()], 0.01),
    "one word of ten": ([replaced(seed, 10) for seed in range(4)], 0.04),
    "one word of three": ([replaced(seed, 3) for seed in range(4)], 0.11),
    "noise": ([(plain(each[:9000]), with_noise(plain(each[:9000]), 0.05, 1)) for each in SPEECHES[:6]], 0.02),
    "letters left out": ([(LONG, without_letters(LONG))], 0.01),
}


@pytest.mark.parametrize("name", DISTANCES)
def test_distances_are_close_to_the_true_ones(name: str) -> None:
    pairs, most = DISTANCES[name]
    assert sum(error(*pair) for pair in pairs) / len(pairs) < most
    assert {of_texts(*pair).scattered for pair in pairs} == {name in ("noise", "letters left out")}


def test_the_gate_never_changes_a_verdict() -> None:
    signatures = [sign(text, name) for name, text in sorted(TEXTS.items())[::4]]
    stopped = 0
    for one in signatures:
        for other in signatures:
            if one.id >= other.id:
                continue
            numbers = estimate(one, other)
            if numbers.matches or not numbers.common:
                continue
            # States of one lineage are always aligned, whatever they share.
            aligned = estimate(replace_fields(one, lineage="x"), replace_fields(other, lineage="x"))
            aligned = aligned._replace(same_lineage=False)
            assert relate(one, other, numbers).relation == relate(one, other, aligned).relation == "unrelated"
            stopped += 1
    assert stopped > 100


def test_distances_and_spans_are_characters_whatever_the_width_of_a_character() -> None:
    table = str.maketrans("etaoinshrdlu", "ετασιωσηρδλυ")
    text, block = words(1, 1200), words(2, 100)
    latin = [" ".join(text), " ".join([*text[:500], *block, *text[500:]])]
    greek = [each.translate(table) for each in latin]
    numbers = of_texts(*greek)
    assert numbers.distance == pytest.approx(len(latin[1]) - len(latin[0]), abs=20)
    assert places_of(*greek).in_order[-1].longer[1] == pytest.approx(len(greek[1]), abs=5 * numbers.rate)
    assert numbers.longer_characters == len(greek[1])


@pytest.mark.parametrize("every", [10, 20, 40])
def test_the_distance_of_form_letters_lies_in_its_band(every: int) -> None:
    inside, errors = [], []
    for seed in range(12):
        random, text = Random(seed), plain(SPEECHES[seed]).split()[:600]
        places = {place for place in range(600) if random.random() < 1 / every}
        one, other = (
            " ".join(f"{random.randrange(10**6)}" if place in places else word for place, word in enumerate(text))
            for _ in range(2)
        )
        numbers, truth = of_texts(one, other), Levenshtein.distance(one, other)
        inside.append(numbers.low <= truth <= numbers.high)
        errors.append((numbers.distance - truth) / truth)
    assert sum(inside) >= 10
    assert abs(sum(errors) / len(errors)) < 0.25


def test_a_band_holds_the_other_reading_only_if_that_is_likely() -> None:
    wide = 0
    for seed in range(12):
        text = plain(SPEECHES[seed])[:6_000]
        few, many = with_noise(text, 0.006, seed), with_noise(text, 0.06, seed)
        of_few, of_many = of_texts(text, few), of_texts(text, many)
        assert of_few.low <= Levenshtein.distance(text, few) <= of_few.high
        wide += of_few.high > 2 * of_few.distance
        assert of_many.scattered
        assert of_many.high < 1.5 * of_many.distance
    assert wide > 3


@pytest.mark.parametrize("change", [{"scheme": "other"}, {"collection": "other"}, {"n_bytes": 0}])
def test_what_cannot_be_compared_is_refused(change: dict[str, object]) -> None:
    signature = sign("one two three four five six seven eight nine")
    with pytest.raises(ValueError, match="expected"):
        estimate(signature, replace_fields(signature, **change))


def test_intervals_are_those_of_wilson() -> None:
    # The values are from Newcombe 1998, table I: 81 of 263, 15 of 148, 0 of 20.
    assert wilson(81 / 263, 263) == pytest.approx((0.2553, 0.3662), abs=5e-5)
    assert wilson(15 / 148, 148) == pytest.approx((0.0624, 0.1605), abs=5e-5)
    assert wilson(0.0, 20) == pytest.approx((0.0, 0.1611), abs=5e-5)
    share = resemblance_share(0.898)
    assert (share.low, share.high) == pytest.approx((0.8304, 0.9404), abs=5e-5)
    assert resemblance_share(0.0).low == 0.0
    assert containment_share(0, 0).high == 1.0
