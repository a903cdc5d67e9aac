"""Texts of one set of shingles, which come in them at other numbers."""

from itertools import chain
from random import Random

import pytest

from nearstream.streams.estimates.comparing import estimate
from nearstream.streams.estimates.estimate import Estimate
from nearstream.streams.fingerprints.hashing import HashKey
from nearstream.streams.relations.verdict import Verdict, relate
from nearstream.streams.signing.scheme import preset
from nearstream.streams.signing.signer import Signer
from tests.reference.estimate import estimate as expected_estimate
from tests.support.made_up import KEY, sign, words

VERSES = [words(seed, 60) for seed in range(1, 11)]
REFRAIN = words(20, 80)
LABELS = ["fine", "mail", "compact", "noise"]


def related(newer: list[str], older: list[str], label: str = "fine") -> Verdict:
    signer = Signer(preset(label, KEY), KEY)
    one, other = sign(newer, "b", signer), sign(older, "a", signer)
    numbers = estimate(one, other)
    assert expected_estimate(one, other) == numbers
    return relate(one, other, numbers)


def shares(numbers: Estimate) -> tuple[float, float, float]:
    return numbers.containment_shorter.value, numbers.containment_longer.value, numbers.mean_resemblance


@pytest.mark.parametrize("label", LABELS)
@pytest.mark.parametrize("size", [39, 166, 900])
@pytest.mark.parametrize("times", [2, 3, 10])
def test_a_text_that_comes_several_times_holds_the_text(times: int, size: int, label: str) -> None:
    once = words(size, size)
    for newer, older, inner in ((once * times, once, "older"), (once, once * times, "newer")):
        found = related(newer, older, label)
        assert (found.relation, found.inner) == ("containment", inner)
        true_distance = len(" ".join(once * times)) - len(" ".join(once))
        assert found.estimate.distance == pytest.approx(true_distance, rel=0.02)
        assert shares(found.estimate) == pytest.approx((1, 1 / times, 1 / times), abs=0.08)


def test_a_text_that_comes_nearly_as_often_is_a_near_duplicate() -> None:
    assert related(REFRAIN * 10, REFRAIN * 9).relation == "near_duplicate"
    assert related(REFRAIN * 10, [*REFRAIN * 10, *words(3, 30)]).relation == "near_duplicate"


def test_a_song_with_its_refrain_once_lies_in_the_song_with_all_refrains() -> None:
    often = list(chain.from_iterable(verse + REFRAIN for verse in VERSES))
    once = [*VERSES[0], *REFRAIN, *chain.from_iterable(VERSES[1:])]
    found = related(often, once)
    assert found.relation in ("containment", "version")
    assert found.estimate.mean_resemblance == pytest.approx(len(once) / len(often), abs=0.06)


def test_a_refrain_alone_is_no_copy_of_its_song() -> None:
    song = list(chain.from_iterable(verse[:12] + REFRAIN for verse in VERSES))
    found = related(song, REFRAIN)
    assert (found.relation, found.inner) == ("containment", "older")
    assert related(VERSES[0] * 8 + REFRAIN, VERSES[0] + REFRAIN * 8).relation not in ("near_duplicate", "rearranged")


def test_songs_of_one_refrain_are_no_copies_under_any_key() -> None:
    """Of stanzas of equal lengths with a refrain between them, the refrain could be what noise left of the text."""
    own = ["".join(Random(seed).choices("adeiklmnoprstu", k=6)) for seed in range(400)]
    songs = [list(chain.from_iterable(own[at : at + 40] + REFRAIN[:18] for at in range(first, first + 200, 40)))
             for first in (0, 200)]  # fmt: skip
    for number in range(40):
        key = HashKey.from_secret(b"of a deployment, %d" % number)
        signer = Signer(preset("fine", key), key)
        one, other = sign(songs[0], "a", signer), sign(songs[1], "b", signer)
        numbers = estimate(other, one)
        assert relate(other, one, numbers).relation == "overlap"


def test_repeated_text_lies_in_no_text_that_has_it_once() -> None:
    found = related(REFRAIN * 10, [*words(4, 1500), *REFRAIN, *words(5, 1500)])
    assert found.relation in ("overlap", "unrelated")
    assert found.estimate.shared_shorter < 0.2


def test_repetition_in_a_script_without_spaces_is_counted_too() -> None:
    once = ["".join(chr(0x4E00 + ord(letter) * 7 % 5000 + 97 * place) for place, letter in enumerate(word))
            for word in words(6, 60)]  # fmt: skip
    found = related(["".join(once)] * 10, ["".join(once)])
    assert (found.relation, found.inner) == ("containment", "older")
