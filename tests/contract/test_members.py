"""The members of a family are read page by page, also of a large one whose members come and go."""

from dataclasses import replace

import pytest

from nearstream.streams.store.messages import Join
from nearstream.workers.redis.index.index import RedisIndex
from nearstream.workers.redis.reading.members import (
    LabelledFamilies,
    addresses,
    labels_of,
    living,
    members,
    spellings,
    stored_family,
)
from nearstream.workers.redis.server.address import IndexAddress
from tests.contract.conftest import PARTITIONS
from tests.support.filing import Filing
from tests.support.made_up import OTHER, near


@pytest.fixture
async def index(address: IndexAddress) -> RedisIndex:
    """Return an index of a slot for each partition."""
    own = replace(address, slots=PARTITIONS)
    return await RedisIndex.open(own, partitions=PARTITIONS, may_create=True)


async def campaign(index: RedisIndex, copies: int = 2) -> Filing:
    filing = Filing(index.store())
    await filing.put("a")
    for at in range(copies):
        await filing.put(f"c{at}", near(10 + at))
    return filing


async def _all(index: RedisIndex, name: str, page: int) -> list[str]:
    family = await stored_family(index, f"default/{name}")
    assert family is not None
    found: list[str] = []
    after: int | None = 0
    while after is not None:
        some, following = await members(index, family, after, page)
        found += [member.id for member in some]
        assert following is None or following > after
        after = following
    return found


@pytest.mark.parametrize("copies", [3, 30])
async def test_all_members_are_on_one_of_the_pages(index: RedisIndex, copies: int) -> None:
    filing = await campaign(index, copies)
    names = ["a", *(f"c{at}" for at in range(copies))]
    for page in (1, 7, copies + 1, 1_000):
        assert await _all(index, "c1", page) == names
    for gone in ("a", "c0"):
        await filing.remove(gone)
    assert await _all(index, "c2", 7) == names[2:]
    family = await stored_family(index, "default/c1")
    assert family is not None
    assert family.size == copies - 1
    assert await addresses(index, family) == ([], [])


async def test_two_states_of_one_place_are_on_one_page(index: RedisIndex) -> None:
    await campaign(index, 3)
    family = await stored_family(index, "default/c0")
    assert family is not None
    (number,) = [number for number, one in (await _members_by_number(index)).items() if one == "c0"]
    again = Join(family.number, number + 1_000, False, True, b"", number, b"", 0)
    await index.store().join([again])  # its former state has not left yet
    assert await _all(index, "c0", 1) == await _all(index, "c0", 2) == ["a", "c0", "c1", "c2"]


async def _members_by_number(index: RedisIndex) -> dict[int, str]:
    found = await living(index, range(PARTITIONS, 20 * PARTITIONS))
    return {number: record.id for number, record in found.items()}


async def test_a_document_without_copies_is_a_family_of_one(index: RedisIndex) -> None:
    filing = await campaign(index)
    verdict = (await filing.put("alone", OTHER)).verdict
    assert verdict is not None
    for _ in range(2):
        facts = await stored_family(index, "default/alone")
        assert facts is not None
        assert (facts.family_id, facts.size, facts.joined) == (verdict.family.id, 1, (0, 0, 0))
        assert await _all(index, "alone", 10) == ["alone"]
        await filing.label("alone")  # which makes its family known


async def test_an_unknown_and_a_removed_document_have_none(index: RedisIndex) -> None:
    filing = await campaign(index)
    await filing.remove("c0")
    for name in ("nobody", "c0"):
        assert await stored_family(index, f"default/{name}") is None


async def test_the_labelled_documents_of_a_family_are_named_while_they_live(index: RedisIndex) -> None:
    filing, reader = await campaign(index), LabelledFamilies(index.address)
    assert await reader.growth("default/c1") is None
    for name in ("a", "c0", "c1"):
        await filing.label(name, age_seconds=7_200)
    await filing.remove("c0")
    family = await stored_family(index, "default/c1")
    assert family is not None
    assert sorted(name for name, _ in await labels_of(index, family)) == ["a", "c1"]
    growth = await reader.growth("default/c1")
    assert growth is not None
    assert (growth.before, growth.copies) == (0, 2)
    assert await reader.growth("default/c0") is None
    await reader.close()


def test_an_id_is_looked_up_as_it_is_given_and_then_as_message_ids_are_written() -> None:
    assert spellings("1@a") == ["1@a", "<1@a>"]
    assert spellings(" <1@a> ") == [" <1@a> ", "<1@a>", "1@a"]
    assert spellings("<>") == ["<>"]
