"""The members of a family are read page by page, also of a large one whose members come and go."""

import pytest

from nearstream.streams.store.limits import LINEAGE_CAP
from nearstream.workers.redis_index.index import RedisIndex
from nearstream.workers.redis_index.layout import FEW
from nearstream.workers.redis_index.members import (
    addresses,
    current_number,
    members,
    spellings,
    stored_family,
)
from tests.contract.test_families import WORDS, copy_of, only
from tests.contract.test_labels import campaign
from tests.support.index_documents import admission, removal


async def _all(index: RedisIndex, name: str, page: int) -> list[str]:
    family = await stored_family(index, f"default/{name}")
    assert family is not None
    found: list[str] = []
    after: int | None = 0
    while after is not None:
        some = await members(index, family, after, page)
        found += [member.id for member in some.members]
        assert some.next is None or some.next > after
        after = some.next
    return found


@pytest.mark.parametrize("copies", [3, FEW + 20])
async def test_all_members_are_on_one_of_the_pages(redis_index: RedisIndex, copies: int) -> None:
    await campaign(redis_index, copies)
    names = ["a", *(f"c{at}" for at in range(copies))]
    for page in (1, 7, 1_000):
        assert await _all(redis_index, "c1", page) == names
    for gone in ("a", "c0"):
        await only(redis_index, removal(gone), 1)
    assert await _all(redis_index, "c2", 7) == names[2:]
    family = await stored_family(redis_index, "default/c1")
    assert family is not None
    assert family.facts.size == copies - 1
    assert await addresses(redis_index, family) == ([], [])


async def test_a_document_without_copies_is_a_family_of_one(redis_index: RedisIndex) -> None:
    await only(redis_index, admission("alone", anchors=range(LINEAGE_CAP)))
    assert await _all(redis_index, "alone", 10) == ["alone"]
    joined = await only(redis_index, copy_of(WORDS, "a", 0))
    assert joined.number == await current_number(redis_index, "default/a")


async def test_an_unknown_and_a_removed_document_have_none(redis_index: RedisIndex) -> None:
    await campaign(redis_index)
    await only(redis_index, removal("c0"), 1)
    for name in ("nobody", "c0"):
        assert await stored_family(redis_index, f"default/{name}") is None
        assert await current_number(redis_index, f"default/{name}") == 0


def test_an_id_is_looked_up_as_it_is_given_and_then_as_message_ids_are_written() -> None:
    assert spellings("1@a") == ["1@a", "<1@a>"]
    assert spellings(" <1@a> ") == [" <1@a> ", "<1@a>", "1@a"]
    assert spellings("<>") == ["<>"]
