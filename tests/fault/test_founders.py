"""Which families without a founder are excused, and how many."""

from collections import Counter
from dataclasses import replace

import pytest

from nearstream.schemas.document import document_key
from nearstream.schemas.verdict import DocumentVerdict
from nearstream.workers.config.settings import load
from tests.fault.corpus import corpus
from tests.fault.families import decode_verdict, place_of
from tests.fault.founders import Founderless, founderless, founderless_families, most_by_chance
from tests.fault.oracle import Expected, expected, in_order_of_time
from tests.fault.reading import Read
from tests.fault.simulated import simulated
from tests.fault.test_harness import in_family, saying
from tests.fault.verify import last_values

Case = tuple[Read, Expected]


@pytest.fixture(scope="module")
async def good() -> Case:
    found = await simulated(settings := load({}), corpus(300, 3), 3)
    return found, await expected(settings, in_order_of_time(found.documents))


def founders_of_pairs(found: Read) -> list[DocumentVerdict]:
    """Return the verdicts of founders that one other document has joined."""
    verdicts = [decode_verdict(value) for value in last_values(found.verdicts).values()]
    sizes = Counter(each.family.id for each in verdicts)
    return [each for each in verdicts if each.verdict == "unique" and sizes[each.family.id] == 2]


def with_joined(found: Read, count: int) -> Read:
    """Return the records with so many founders in another family, as if they had joined it."""
    *founders, other = founders_of_pairs(found)
    assert len(founders) >= count
    for number, each in enumerate(founders[:count]):
        found = saying(found, in_family(each, other.family.id, 90 + number))
    return found


def only(found: Read, told: Expected) -> Founderless:
    (family,) = founderless(found, told)
    return family


def test_one_whose_founder_joined_another_while_its_copies_arrived_is_excused_and_told(good: Case) -> None:
    found, told = good
    assert founderless(found, told) == []
    family = only(joined := with_joined(found, 1), told)
    assert founderless_families(joined, told) == 0
    (copy,), (founder,) = family.members, family.founders
    assert (copy.family.ordinal, founder.family.ordinal) == (2, 90)
    assert str(family) == (
        "its founder joined another family while its copies arrived: "
        f"{copy.collection}/{copy.id} {copy.version} {copy.verdict} {place_of(copy)}: {copy.family.id} 2; founded by "
        f"{founder.collection}/{founder.id} {founder.version} unique {place_of(founder)}: {founder.family.id} 90"
    )


def test_more_than_chance_gives_are_not_excused(good: Case) -> None:
    found, told = good
    assert [founderless_families(with_joined(found, count), told) for count in (1, 2, 3, 5)] == [0, 0, 1, 3]


def test_one_whose_copy_was_sent_after_the_verdict_of_its_founder_is_not_excused(good: Case) -> None:
    found, told = good
    joined = with_joined(found, 1)
    (copy,) = only(joined, told).members
    late = max(record.timestamp_ms for _, record in joined.verdicts) + 1
    documents = [
        record._replace(timestamp_ms=late) if (record.partition, record.offset) == place_of(copy) else record
        for record in joined.documents
    ]
    assert founderless_families(replace(joined, documents=documents), told) == 1


@pytest.mark.parametrize("ordinal", [2, 90])
def test_one_whose_founder_joined_no_other_is_not_excused(good: Case, ordinal: int) -> None:
    found, told = good
    founder = founders_of_pairs(found)[0]
    assert founderless_families(saying(found, in_family(founder, founder.family.id, ordinal)), told) == 1


def test_one_whose_founder_has_no_verdict_is_excused_only_if_it_was_removed(good: Case) -> None:
    found, told = good
    founder = founders_of_pairs(found)[0]
    silent = replace(found, verdicts=[each for each in found.verdicts if each[0] != founder.event_id])
    assert founderless_families(silent, told) == 1
    removed = replace(told, removed={(9, 9): document_key(founder.collection, founder.id)})
    assert founderless_families(silent, removed) == 0


@pytest.mark.parametrize(("mean", "most"), [(0, 0), (0.0009, 0), (0.002, 1), (0.228, 3), (0.748, 5), (8, 18)])
def test_rare_things_exceed_their_bound_in_one_of_1000_runs(mean: float, most: int) -> None:
    assert most_by_chance(mean) == most
