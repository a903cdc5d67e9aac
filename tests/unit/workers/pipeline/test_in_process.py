"""Documents that are matched in this process."""

import json

import pytest

from nearstream.schemas.record import ConsumerRecord
from nearstream.workers.config.settings import load
from nearstream.workers.pipeline.deployment import Deployment
from nearstream.workers.pipeline.file_source import Item
from nearstream.workers.pipeline.in_process import embedded
from tests.support.made_up import words

SOUP, BREAD, SALT = (" ".join(words(seed, 60)) for seed in (1, 2, 3))


def item(offset: int, name: str, text: str | None) -> Item:
    value = None if text is None else json.dumps({"id": name, "text": text}).encode()
    return Item(f"line {offset}", ConsumerRecord("documents", 0, offset, 1_772_000_000_000, name.encode(), value, []))


@pytest.mark.parametrize(
    ("records", "families"),
    [
        ([("a", SOUP), ("b", BREAD), ("c", SALT)], []),
        ([("a", SOUP), ("b", SOUP), ("a", SOUP), ("c", BREAD), ("d", SOUP)], [("default/a", 3)]),
        ([("a", SOUP), ("b", SOUP), ("c", BREAD), ("d", BREAD), ("d", SALT)], [("default/a", 2), ("default/c", 1)]),
        ([("a", SOUP), ("b", SOUP), ("c", SOUP), ("a", None)], [("", 2)]),
    ],
    ids=["no copies", "one comes again unchanged", "one changes", "a founder is removed"],
)
async def test_families_with_a_second_member_are_listed_once(
    records: list[tuple[str, str | None]], families: list[tuple[str, int]]
) -> None:
    job = embedded(Deployment.of(load({})))
    items = [item(offset, *record) for offset, record in enumerate(records)]
    outcomes = [outcome async for outcome in job.outcomes(items)]
    assert [outcome.refusal for outcome in outcomes] == [""] * len(items)
    assert sorted((each.founder, each.size) for each in await job.families()) == families
