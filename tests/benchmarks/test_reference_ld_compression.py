"""The LD compressions of the sources give the printed figures, including their errors."""

import ast
import json
import math
import random
from collections import Counter
from functools import cache
from itertools import combinations, pairwise
from math import log2
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rapidfuzz.distance import Levenshtein

from benchmarks.reference.ld_compression import (
    ALPHANUMERIC,
    compress_to_bits,
    compress_to_symbols,
    residual,
    scaled_distance,
    window_sums,
)

EXAMPLES = Path(__file__).parents[2] / "examples/documents.jsonl"

# The first 100 symbols of the signatures of 25 books, as printed in Peter Coates, "Super Fast Estimates of Levenshtein
# Distance", section "Some Real Examples".
_PRINTED = """
RQNXXjCAovG2QEv29jR35fsCX5uZuaAfQIAouECef7jauXC2VGNTQ2NeKAZfAuA5o72GC9VR9xsXZ9Ijb5vXI7fmZy7N7Tm7e7I5
3eRAx9RQNVeoC9Ze9o37RKE5e9eGqVjGC9oERe9b9KZmuuev3NqaabCaV9oIuG7G2yX22C9K2fbNXajGIVx9GesoNmERTE5CbXuX
9RQNeQm9jTK3E7C3Zm93Zbb7TVTjjyQxfbjeqRbamEmvCqCsjGmso9oC9sTGAqZ7RNTsXfN7oQRV7NXX7GXEj2yVqbmj7EGQomvK
x9RQNVsfEjbX7aKyoVaNI7yojuQu5TuK3fNKZXaQXy9fEbxajeVC9xuC3uNxy7RT3xIubjXvf7baXVeX2QAqvQbKZQ2ZNRs5yjGy
x9RQNV9sEX7x9jEIfXKIjbKC2CassqasouV5RT3Kv3aVsEmGoo9uxeGCvI279fTA2INmGmseuAe9uRqITmQjbyZ3uaQV35AuKou9
Ax9RQNEAR5x9GI2Aa95ZRex9QIQEu9XQQ7eG7TuqNqjj5KK5A93VxbGoayaayCEqEXGAaICfx9bVGIaaCK9aCqyCfNmaCCqQuNVu
Ax9RQNuefX9jxeXq2jAe53TIomKZsjZuEZxmKxsau2Z7yCmouVAufjoeK2GeN7Ix7Tb9oxye3XTToqK2ZC3aj3K2Vf35XjQ9y9VX
x9RQNXxEu9KGj99TqCCVA2CGExNRTe9NZAIfZTuajG3vjIa2A25qAb7qmVq2abeNANVGuIaEKEC7IGG5feEoeTy3ZAAQKVqNxvCR
RQNaTNs9j3aoGa9fG2bNVZyE3CTaZfaRo7TCajyIvxeGZ35eqNIsyT3mCG5oeQ7ZfXxCCT9v7AAo23veEombVaTjjbG3bXousN5Q
x9RQNV59KGjT9AfCvssfyKEs5fEfQEIabGvv3o9V9syeQa7o7veKaTxa3Q3V9smKVoquCNvff7aaRNCEGbXjxTIe7EEZNEsb9Zu3
RQNVm39jVm5mu9eRsbQ3Vqf5K29aKCyayxsjqGZKfbX9xy5x9aauCR9TuKE2a3RuCNNmQmmTjmGVuT3GTeEuCm3eVvvmyRKRafyx
x9RQNZa9KGjZjKK7AQ53CGTGEyERyATVbRRyGNNaETGZVbuNVXC73bTAmvVoxV3qaaKaE7yomTN9ZVNVCsfGjNyIyAV2ICxVsGZV
RQ5ym939KGjTVsfvNCsGxX2vKNVN9yqZE95EfxvGq3E5AVvjoITI59CVve7ZZv22sNXsI7A5fabEKase9ysQEN579NAXAbuINejZ
yKAx9RQZ9ZIxQGI5q2ZsjmIRXEfsZINx95soxXAuXyCQCoQN7oTojNVyK3fo3qbusKmqxmyyo7VA2TusEE5f9Z9sTEXxNAfmjyqv
9RQRqQZ9KGjqyqbbqIfRAKumeseoEoqTEfCyE3XXXIR3G5TA7AImmyqVV597v9uZoZvsK5ZCQ9Zj7q975CAausjGvKq99bsfGTCZ
9RQ29juK2X7a7bxvmRyGVZQ75sTaZqCIbxfRX5ReGbeRvjmRsCKTbReuGR5Rq7sZV3VAxaxZXxQ5ybqjqm75q3VaRRmXumIXCsju
9RQRX9jZZIXZKKevNfvmIVRoVuxqxVaCQaoEoTNvv2X9AvqqofQe739N7sV5X5XRIo2TRffqNGIyK9jXa9RaE7jRq5T3jQbfxvC2
RQTeEI9j7AsCQVVC5fZAyAyAxxoG9Xa9mGIR3b2ZAyQRNqof9IvxbVZ339oGVAyaCXbKmo5yf3Z7RZas55VxTsI22efjbufasNGQ
Ax9RQ5bvqj9jf5Io5NG377o73RKm5A7yGxb7Ne5Qv5vv9muqQTx2uR7E3bjbGyyQ7RvoQa2omyj2joKGo9uxjeAbGufRCGuyQuG2
9RQ3aQKK9jyQjIC73m5RX75AoauXeKx2mQIT5aqxxxuVsTfuAGq72sACG3asGQRNN5GsN2NEjbu3yNvKsoXuj7mqVKXKqIfvKbXq
9RQ3aK9jyQjIC73m5RX75AoauXeKx2mQIT5aqxxxuVsTfuAGq72sACG3asGQRNN5GsN2NEjbu3yNvKsoT3v7mZEaNQX2a7NZxs7j
j72Ax9RQEj3jKu9yZ9sEVf2qZEx7E9yCfxj5vfs5ZRIIfxI2fXNAVqXmvKuRse37VQvbyVfqbQe332jqeINfNNmNXGCqNeCevbym
Ax9RQE3jKu9myZ9EV2qKEsEC7f5X5Txv5KZsfmCT23fNQGmGKuQe7VQvyV7fqb32jqeIIfNNmTGCNNe3vbqQ3bqZ5RfC3byKyKjR
9RQba9jybjjsVjQqqIVba5yCjEANaIATIQma5N92AmAK5XjZ953XfvsQN7GEZ5uqay55EZ2R3NCA2NsXERsEaoVZG75xKq5s5Ts3
9RQba9jybjjsVjQqqIVba5yCjEANaIATIQm592AmAK5XjZ953XfvsQN7GEZ5uqay55EZ2R3NCA2NsXERsEaoVZG75xKq5s5Ts3je
"""
PRINTED = _PRINTED.split()

# Blog, section "How well does it work?", second table, at C = 100: lengths, signature lengths, distance of the
# signatures, true distance, estimate, error over the longer text, residual. Two errors are printed shorter or rounded.
ACCURACY = [
    ((27_478, 23_932), (366, 419), 366, 20_706, 24_002, 0.1200, 0.855),
    ((27_620, 27_620), (305, 305), 0, 0, 0, 0.0, 0.0),
    ((4_865, 2_404), (34, 61), 27, 2_461, 2_153, 0.0632, 0.0),
    ((4_865, 2_474), (27, 61), 34, 2_391, 2_711, 0.0659, 0.0),
    ((4_865, 4_801), (59, 61), 3, 64, 239, 0.0360, 0.017),
]

# Paper, section 4.2.1: C, estimates at 1, 5, 10, 20, 30 % of the characters substituted, and the column "Error".
PAPER_ERRORS = {
    50: ((333, 1_000, 2_416, 2_350, 3_700), (0.0267, 0.0864, 0.1943, 0.1890, 0.2976)),
    100: ((66, 600, 1_066, 1_666, 1_833), (0.0483, 0.2976, 0.0859, 0.1343, 0.1478)),
    200: ((66, 200, 266, 800), (0.0053, 0.0161, 0.0322, 0.0645)),
}


@cache
def texts() -> list[str]:
    documents = [json.loads(line) for line in EXAMPLES.read_text(encoding="utf-8").splitlines()]
    return [document["text"] for document in sorted(documents, key=lambda document: str(document["id"]))]


@cache
def speeches() -> list[str]:
    """Return the first 13,508 characters of speeches, the length of the paper's text."""
    documents = [json.loads(line) for line in EXAMPLES.read_text(encoding="utf-8").splitlines()]
    long = [entry for entry in documents if entry["labels"]["kind"] == "speech" and len(entry["text"]) >= 13_508]
    return [entry["text"][:13_508] for entry in sorted(long, key=lambda entry: str(entry["id"]))]


def entropy(symbols: str) -> float:
    shares = [count / len(symbols) for count in Counter(symbols).values()]
    return -sum(share * math.log2(share) for share in shares)


def estimate(one: str, other: str, rate: int, neighbourhood: int) -> float:
    signatures = [compress_to_bits(text.encode(), rate=rate, neighbourhood=neighbourhood) for text in (one, other)]
    distance = Levenshtein.distance(signatures[0].tobytes(), signatures[1].tobytes())
    return scaled_distance(distance, (len(one), len(other)), (signatures[0].size, signatures[1].size))


def test_a_fixed_text_has_a_fixed_signature() -> None:
    text = "It was the best of times, it was the worst of times, it was the age of wisdom"
    assert compress_to_symbols(text, rate=5, neighbourhood=12) == "IpK8shriO8s3"
    assert "".join(map(str, compress_to_bits(text.encode(), rate=5, neighbourhood=4))) == "1001010001001"


def test_rate_100_leaves_31_symbols_and_rate_310_one() -> None:
    text = "".join(texts())[:1_000_000]
    found = {rate: len(set(compress_to_symbols(text, rate=rate, neighbourhood=12))) for rate in (25, 31, 62, 100, 310)}
    assert found == {25: 62, 31: 2, 62: 1, 100: 31, 310: 1}
    assert found == {rate: 62 // math.gcd(rate, 62) for rate in found}


def test_the_printed_signatures_have_31_symbols() -> None:
    assert len(PRINTED) == 25
    assert "".join(sorted(set("".join(PRINTED)))) == "23579ACEGIKNQRTVXZabefjmoqsuvxy"
    assert entropy("".join(PRINTED)) == pytest.approx(4.9379, abs=5e-5)
    assert sum(map(entropy, PRINTED)) / 25 == pytest.approx(4.702, abs=5e-4)


def test_the_printed_signatures_hold_three_kin_pairs() -> None:
    distances = {
        (i + 1, j + 1): Levenshtein.distance(PRINTED[i], PRINTED[j]) for i, j in combinations(range(len(PRINTED)), 2)
    }
    kin = {pair: distance for pair, distance in distances.items() if distance < 70}
    assert kin == {(24, 25): 4, (20, 21): 19, (22, 23): 63}
    others = [distance for pair, distance in distances.items() if pair not in kin]
    assert (len(others), min(others), max(others)) == (297, 83, 96)
    assert PRINTED[23][:35] == PRINTED[24][:35]


def test_entropy_has_31_symbols_as_its_ceiling_unless_symbol_and_sampling_part() -> None:
    text = "".join(texts())[:1_000_000]
    symbols = compress_to_symbols(text, rate=100, neighbourhood=12)
    assert 4.92 < entropy(symbols) <= math.log2(31)
    # With H div C instead of H, the residue that selects a window says nothing about its symbol.
    apart = compress_to_symbols(text, rate=100, neighbourhood=12, alphabet="".join(map(chr, range(100, 6_300))))
    assert entropy("".join(ALPHANUMERIC[(ord(symbol) - 100) // 100 % 62] for symbol in apart)) > 5.9


@pytest.mark.parametrize(("lengths", "signatures", "distance", "true", "estimated", "error", "left"), ACCURACY)
def test_the_blogs_table_follows_from_the_ratio_of_lengths(
    lengths: tuple[int, int],
    signatures: tuple[int, int],
    distance: int,
    true: int,
    estimated: int,
    error: float,
    left: float,
) -> None:
    assert int(scaled_distance(distance, lengths, signatures)) == pytest.approx(estimated, abs=1)
    assert abs(scaled_distance(distance, lengths, signatures) - true) / max(lengths) == pytest.approx(error, abs=1e-4)
    assert residual(distance, signatures) == pytest.approx(left, abs=5e-4)


def test_multiplying_by_the_rate_puts_texts_farther_apart_than_they_are_long() -> None:
    (lengths, _, distance, *_) = ACCURACY[0]
    assert distance * 100 == 36_600 > max(lengths)


def test_all_related_rows_of_the_blog_differ_by_their_length_alone() -> None:
    assert [true - abs(a - b) for (a, b), _, _, true, *_ in ACCURACY[1:]] == [0, 0, 0, 0]


def test_the_papers_error_is_its_estimate_over_the_unrelated_distance_in_10_of_14_rows() -> None:
    rows = [
        (value / 12_430, error)
        for estimates, errors in PAPER_ERRORS.values()
        for value, error in zip(estimates, errors, strict=True)
    ]
    assert (len(rows), sum(abs(share - error) < 5e-4 for share, error in rows)) == (14, 10)


def test_the_papers_last_column_of_blocks_is_a_difference_over_a_maximum_that_varies() -> None:
    printed = [(500, 200, 0.0274), (2_500, 2_200, 0.0245), (5_000, 6_000, -0.2401)]  # C = 200
    printed += [(500, 700, -0.0182), (2_500, 2_800, -0.0246), (5_000, 4_700, -0.0145)]  # C = 100
    printed += [(500, 700, -0.0182), (2_500, 2_100, 0.0327), (5_000, 5_450, -0.0690)]  # C = 50
    implied = [(true - estimated) / share for true, estimated, share in printed]
    few, ten = [each for at, each in enumerate(implied) if at % 3 < 2], implied[2::3]
    assert (int(min(few)), int(max(few))) == (10_948, 12_244)
    assert [round(each) for each in ten] == [4_165, -20_690, 6_522]


def test_the_paper_has_more_edits_than_it_substituted_characters() -> None:
    for share, distances in ((0.05, (777, 764, 814)), (0.10, (1_438, 1_451, 1_461))):
        assert min(distances) > 13_508 * share


def test_printed_signatures_reach_nearly_the_entropy_that_their_symbols_allow() -> None:
    ceiling = log2(31)
    assert all(
        ceiling - 0.08 < each < ceiling for each in (4.93989, 4.92783, 4.92138, 4.91678, 4.89277, 4.89741, 4.87674)
    )


def test_an_additive_hash_cannot_see_anagrams() -> None:
    assert window_sums(b"abcd", 4) == window_sums(b"dcba", 4)
    assert window_sums(b"ac", 2) == window_sums(b"bb", 2)


def test_few_sums_of_four_printable_characters_are_ever_kept() -> None:
    sums = np.arange(4 * 32, 4 * 126 + 1)
    assert sums.size == 377
    shares = [sum(np.count_nonzero(sums % rate == k) for k in range(rate)) / rate for rate in (50, 100, 200)]
    assert [round(share, 1) for share in shares] == [7.5, 3.8, 1.9]


def test_a_bit_depends_on_the_sum_not_on_its_residue() -> None:
    bits = compress_to_bits(speeches()[0].encode(), rate=50, neighbourhood=4)
    assert {0, 1} == set(bits.tolist())


def test_bits_overestimate_few_substitutions_and_fall_short_at_many() -> None:
    errors = [np.mean([substitution_error(text, percent) for text in speeches()[:10]]) for percent in (5, 20, 30)]
    assert errors[0] > 0.02 > errors[1] > errors[2]
    assert errors[2] < -0.02


def substitution_error(text: str, percent: int) -> float:
    """Return the signed error of the estimate at C = 50, N = 4.

    It is divided by the paper's distance of unrelated texts.
    """
    rng = random.Random(percent)
    changed = list(text)
    for place in rng.sample(range(len(text)), len(text) * percent // 100):
        changed[place] = chr(rng.randint(32, 126))
    other = "".join(changed)
    return (estimate(text, other, 50, 4) - Levenshtein.distance(text, other)) / 12_430


@pytest.mark.parametrize("blocks", [1, 5, 10])
def test_inserted_blocks_come_out_near_the_truth(blocks: int) -> None:
    rng = random.Random(blocks)
    estimates = []
    for text, other in pairwise(speeches()[:11]):
        grown = text
        for _ in range(blocks):
            at, start = rng.randrange(len(grown)), rng.randrange(10_000)
            grown = grown[:at] + other[start : start + 500] + grown[at:]
        estimates.append(estimate(text, grown, 50, 4))
    assert np.mean(estimates) == pytest.approx(500 * blocks, rel=0.35)


def test_an_embedded_text_keeps_its_signature() -> None:
    before, text, after = speeches()[:3]
    assert compress_to_symbols(text, rate=100, neighbourhood=10) in compress_to_symbols(
        before + text + after, rate=100, neighbourhood=10
    )


@given(st.text(max_size=80), st.text(max_size=80), st.integers(1, 12), st.integers(1, 4))
def test_concatenation_keeps_both_signatures(one: str, other: str, neighbourhood: int, rate: int) -> None:
    first, second, both = (
        compress_to_symbols(text, rate=rate, neighbourhood=neighbourhood) for text in (one, other, one + other)
    )
    assert both.startswith(first)
    assert both.endswith(second)
    assert len(both) - len(first) - len(second) <= neighbourhood - 1


@given(st.binary(min_size=1, max_size=80), st.data(), st.integers(1, 12))
def test_one_changed_byte_touches_at_most_a_neighbourhood_of_windows(
    data: bytes, draw: st.DataObject, neighbourhood: int
) -> None:
    place = draw.draw(st.integers(0, len(data) - 1))
    changed = data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :]
    touched = np.count_nonzero(window_sums(data, neighbourhood) != window_sums(changed, neighbourhood))
    assert touched <= neighbourhood
    if neighbourhood - 1 <= place <= len(data) - neighbourhood:
        assert touched == neighbourhood


@pytest.mark.parametrize("rate", [50, 100, 150, 350])
def test_one_window_in_the_rate_is_kept(rate: int) -> None:
    # The text is random because equal windows of a real text recur and are all kept or all dropped.
    text = "".join(random.Random(rate).choices("abcdefghijklmnopqrstuvwxyz ", k=300_000))
    windows = len(text) - 11
    kept = len(compress_to_symbols(text, rate=rate, neighbourhood=12))
    assert abs(kept - windows / rate) <= 4 * math.sqrt(windows / rate)


def test_most_single_edits_leave_a_sparse_signature_unchanged() -> None:
    text, rng = speeches()[0], random.Random(1)
    signature = compress_to_symbols(text, rate=100, neighbourhood=10)
    same = 0
    for place in rng.sample(range(len(text)), 50):
        edited = text[:place] + "\u2020" + text[place + 1 :]
        same += compress_to_symbols(edited, rate=100, neighbourhood=10) == signature
    assert same > 35


def test_a_cutoff_gives_the_plain_distance_or_more_than_the_cutoff() -> None:
    for one, other in combinations(PRINTED, 2):
        plain = Levenshtein.distance(one, other)
        assert Levenshtein.distance(one, other, score_cutoff=70) == (plain if plain <= 70 else 71)


def test_the_reference_rests_on_nothing_that_it_shall_judge() -> None:
    for room in (EXAMPLES.parents[1] / "benchmarks/reference").glob("*.py"):
        for node in ast.walk(ast.parse(room.read_text(encoding="utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            for name in names:
                ours = name.split(".")[0] == "nearstream"
                assert not ours or name.startswith(
                    ("benchmarks.reference", "nearstream.streams.fingerprints.normalize")
                ), f"{room}: {name}"


def test_numbers_out_of_range_are_refused() -> None:
    with pytest.raises(ValueError, match="remainder"):
        compress_to_symbols("text", rate=10, neighbourhood=4, remainder=10)
    with pytest.raises(ValueError, match="neighbourhood"):
        compress_to_bits(b"text", rate=10, neighbourhood=0)
    with pytest.raises(ValueError, match="at least one symbol"):
        scaled_distance(0, (5, 5), (0, 0))
    with pytest.raises(ValueError, match="at least one symbol"):
        residual(3, (0, 3))
