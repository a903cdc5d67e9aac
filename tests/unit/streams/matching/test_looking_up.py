"""A look-up asks a store as seldom as it can, and knows the families of what it finds."""

from collections.abc import Sequence
from typing import Any

import pytest

from nearstream.streams.matching.looking_up import newcomer
from nearstream.streams.relations.thresholds import Thresholds
from nearstream.streams.store.limits import IndexLimits
from nearstream.streams.store.store import Call, Shape, Store, Transport
from tests.support.filing import Filing
from tests.support.made_up import KEY, NOON, OTHER, STANDARD, TEXT, near, sign, words
from tests.support.matched import look_up
from tests.support.stores import parts_store, through


class Counted:
    """Carries calls, and notes which ones went out together."""

    def __init__(self, transport: Transport) -> None:
        self.asked: list[str] = []
        self._transport = transport

    async def all(self, calls: Sequence[Call]) -> Sequence[Sequence[Any]]:
        self.asked.append(" ".join(sorted({call.name for call in calls})))
        return await self._transport.all(calls)


@pytest.fixture
async def store() -> Store:
    """Return a store of a family of three, and of a lone document."""
    filled = parts_store(IndexLimits(), Shape(4, 4))
    filing = Filing(filled)
    for name, text in (("a", TEXT), ("b", near(2)), ("c", near(4)), ("lone", OTHER)):
        await filing.put(name, text, observed_at=NOON)
    return filled


@pytest.mark.parametrize(
    ("text", "calls"),
    [
        (words(9, 600), ["peek"]),
        (OTHER, ["peek", "fetch"]),
        (near(5), ["peek", "fetch", "kept", "growth"]),
        (near(2), ["peek", "fetch", "kept", "growth"]),
    ],
    ids=["unknown", "lone", "family", "member"],
)
async def test_a_look_up_takes_few_round_trips(store: Store, text: list[str], calls: list[str]) -> None:
    counted = Counted(store._transport)
    await look_up(through(store, lambda _: counted), newcomer(sign(text, "asked"), STANDARD, KEY, Thresholds()))
    assert counted.asked == calls


async def test_the_record_that_a_family_shares_is_read_once(store: Store) -> None:
    counted = Counted(store._transport)
    reading = through(store, lambda _: counted)
    for text in (near(5), near(2)):
        await look_up(reading, newcomer(sign(text, "asked"), STANDARD, KEY, Thresholds()))
    assert counted.asked.count("kept") == 1
