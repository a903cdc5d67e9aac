"""The states of pages, in memory and in Redis: what was written is read, and lists have an end."""

from collections.abc import AsyncIterator

import pytest

from nearstream.streams.deciding.decider import Decisions
from nearstream.streams.deciding.states import FOLLOWERS_MAX, ErrorText, HostErrors, PageState, Turn
from nearstream.streams.estimates.frames import Seen
from nearstream.workers.redis.kept.decisions import DecisionStore
from nearstream.workers.redis.server.client import open_client
from tests.support.decisions import decision
from tests.support.memory_decisions import MemoryDecisions
from tests.support.verdicts import ref

PAGE = "https://a.example/größe"


@pytest.fixture(params=["memory", "redis"])
async def store(request: pytest.FixtureRequest) -> AsyncIterator[Decisions]:
    if request.param == "memory":
        yield MemoryDecisions()
        return
    address = request.getfixturevalue("address")
    async with open_client(address.connection) as client:
        yield DecisionStore(client, address.namespace)


async def test_a_state_is_read_as_it_was_written_under_each_name_of_its_page(store: Decisions) -> None:
    former = PageState(decision(PAGE, "keep", 1), own=ref(PAGE))
    state = PageState(
        decision(PAGE, "skip", 1), ref(PAGE), "c", "f", "r", b"\x00{@", "https://a.example/", ("old",), former
    )
    assert await store.read_state("default", PAGE) is None
    await store.write(former)
    await store.write_alias("default", "old", PAGE)
    await store.write(state)
    for name in (PAGE, "old"):
        assert await store.read_state("default", name) == state
    assert await store.read_state("news", PAGE) is None
    await store.forget("default", PAGE)
    assert await store.read_state("default", "old") is None


async def test_a_list_of_pages_has_an_end(store: Decisions, monkeypatch: pytest.MonkeyPatch) -> None:
    assert FOLLOWERS_MAX == 1_000
    for module in ("tests.support.memory_decisions", "nearstream.workers.redis.kept.decisions"):
        monkeypatch.setattr(f"{module}.FOLLOWERS_MAX", 3)
    assert [await store.follow("default", PAGE, name) for name in ("ü", "b", "c", "d", "b")] == [True] * 3 + [
        False,
        True,
    ]
    await store.leave("default", PAGE, "b")
    assert sorted(await store.followers("default", PAGE)) == ["c", "ü"]
    assert await store.follow("default", PAGE, "d")
    assert await store.followers("default", "another") == []


async def test_what_is_known_of_a_host_is_kept_apart_from_pages(store: Decisions) -> None:
    frame, errors = {7: Seen(1, 2, (3,))}, HostErrors((Turn("f", PAGE, 9),), (ErrorText("f", "e"),))
    assert (await store.read_frame("default", "a.example"), await store.read_errors("default", "a.example")) == (
        {},
        HostErrors(),
    )
    await store.write_frame("default", "a.example", frame)
    await store.write_errors("default", "a.example", errors)
    assert await store.read_frame("default", "a.example") == frame
    assert await store.read_errors("default", "a.example") == errors
    assert await store.read_state("default", "a.example") is None
