"""What is kept beside an index: the records of deployments, the states of pages, and what alerts count."""

import asyncio
import uuid
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from functools import partial

import msgspec
import pytest

from nearstream.schemas.alerts.alert import Alert
from nearstream.schemas.documents.record import ProducerRecord
from nearstream.streams.alerting.counting import Arrival, Rule, Subject, Tally, adopted, count, end_quiet
from nearstream.streams.deciding.decider import Needs
from nearstream.streams.deciding.deciding import renewed
from nearstream.streams.deciding.memory import MemoryDecisions
from nearstream.streams.deciding.states import ErrorText, HostState, Shown, Turn
from nearstream.workers.config.settings import SettingsError
from nearstream.workers.kafka.lag import PartitionLag
from nearstream.workers.monitoring.health import Health
from nearstream.workers.pipeline.alert import Alerting
from nearstream.workers.pipeline.dead_letters import DeadLetterWriter
from nearstream.workers.redis.kept import tallies
from nearstream.workers.redis.kept.decisions import DUE_MAX, DecisionStore
from nearstream.workers.redis.kept.deployments import (
    DeploymentRecord,
    add_deployment,
    deployments,
    forget_scheme,
    replace_deployment,
)
from nearstream.workers.redis.kept.tallies import KEPT_MS, TallyStore
from nearstream.workers.redis.server.address import IndexAddress
from nearstream.workers.redis.server.client import Client, open_client
from tests.support.decisions import forget, page_state, store_states
from tests.support.live import alert

TOPIC = "nearstream.signatures.v1"
FIRST = DeploymentRecord("dense-1", "one", 6)


@pytest.fixture
async def client(address: IndexAddress) -> AsyncIterator[Client]:
    async with open_client(address) as opened:
        yield opened


async def test_the_first_record_of_a_topic_stays(client: Client, address: IndexAddress) -> None:
    assert await deployments(client, address) == {}
    assert await add_deployment(client, address, TOPIC, FIRST) == {TOPIC: FIRST}
    assert await add_deployment(client, address, TOPIC, replace(FIRST, scheme="compact-1")) == {TOPIC: FIRST}
    beside = replace(FIRST, scheme="compact-1", group="two")
    assert await add_deployment(client, address, f"b.{TOPIC}", beside) == {TOPIC: FIRST, f"b.{TOPIC}": beside}


async def test_of_several_first_starts_at_once_all_read_one_record(address: IndexAddress) -> None:
    async def start(number: int) -> DeploymentRecord:
        async with open_client(address) as client:
            return (await add_deployment(client, address, TOPIC, replace(FIRST, scheme=f"s-{number}")))[TOPIC]

    assert len(set(await asyncio.gather(*map(start, range(20))))) == 1


async def test_a_group_takes_over_one_topic(client: Client, address: IndexAddress) -> None:
    for topic in (TOPIC, f"b.{TOPIC}"):
        await add_deployment(client, address, topic, FIRST)
    second = replace(FIRST, group="two")
    await replace_deployment(client, address, TOPIC, second)
    assert await deployments(client, address) == {TOPIC: second, f"b.{TOPIC}": FIRST}


async def test_a_scheme_is_forgotten_on_all_its_topics(client: Client, address: IndexAddress) -> None:
    await add_deployment(client, address, TOPIC, FIRST)
    await add_deployment(client, address, f"b.{TOPIC}", replace(FIRST, scheme="compact-1"))
    assert await forget_scheme(address, "noise-1") == []
    assert await forget_scheme(address, "dense-1") == [TOPIC]
    assert set(await deployments(client, address)) == {f"b.{TOPIC}"}


async def test_a_worker_that_signs_needs_few_rights(client: Client, address: IndexAddress) -> None:
    name = f"test-{address.namespace}"
    rights = ("on", ">pw", f"~{{{address.namespace}}}:deployments", "+hgetall", "+hsetnx", "+hset")
    await client.execute_command("ACL", "SETUSER", name, *rights)
    limited = replace(address, url=address.url.replace("//", f"//{name}:pw@"))
    try:
        async with open_client(limited) as own:
            assert await add_deployment(own, limited, TOPIC, FIRST) == {TOPIC: FIRST}
            await replace_deployment(own, limited, TOPIC, FIRST)
            with pytest.raises(SettingsError, match="the server refuses us"):
                await deployments(own, replace(limited, namespace="other"))
    finally:
        await client.execute_command("ACL", "DELUSER", name)


PAGE = "https://a.example/größe"


@pytest.fixture
async def store(client: Client, address: IndexAddress) -> DecisionStore:
    return DecisionStore(client, address.namespace)


async def test_what_a_batch_has_changed_is_loaded_for_the_next_one(store: DecisionStore) -> None:
    rests = msgspec.structs.replace(
        page_state(PAGE, "copy", 1), parts=b"\x00{@", before=page_state(PAGE, "unchanged", 1)
    )
    shown, turn = Shown(1, 2, 3, True, b"ab"), Turn("turned", 9, b"abcd")
    host = HostState((shown,), True, b"f", b"c", b"n", b"s", (turn,), (ErrorText("f" * 32, 9, b"abcd"),))
    first, turned, other = (page_state(name, "first", 1) for name in ("first", "turned", "other"))
    await store_states(store, page_state("old", "unchanged", 1), rests, first, turned, other)
    await store_states(store, aliases={"old": PAGE})
    await store.save(
        MemoryDecisions(),
        MemoryDecisions(hosts={("default", "a.example"): host}, folders={("default", "a.example/"): bytes(22)}),
    )
    places = ("default", "a.example"), ("default", "a.example/")
    found = await store.load(Needs({("default", "old"), ("news", PAGE)}, {places[0]}, {places[1], ("news", "a/")}))
    assert found.aliases == {("default", "old"): PAGE}
    # That on which a page rests, and that which has turned.
    assert found.states == {("default", each.name): each for each in (rests, first, turned)}
    assert (found.hosts, found.folders) == ({places[0]: host}, {places[1]: bytes(22)})
    # A page that is asked about waits by what is known of its folder now.
    asked = renewed(rests, bytes(22), store.freshness)
    assert asked.wait_seconds != rests.wait_seconds
    assert await store.read_states("default", ["old", PAGE, "other", "new"]) == [asked, asked, other, None]
    await forget(store, PAGE)
    assert await store.read_state("default", "old") is None
    assert await store.read_state("default", PAGE) is None


async def test_of_too_many_pages_of_a_host_those_due_last_are_not_listed(
    client: Client, address: IndexAddress, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert DUE_MAX == 100_000
    monkeypatch.setattr("nearstream.workers.redis.kept.decisions.DUE_MAX", 3)
    store = DecisionStore(client, address.namespace)
    await store_states(
        store, *(page_state(f"https://a.example/{-days}", "unchanged", days) for days in (-1, -4, -2, -5, -3))
    )
    assert [each.decision.lineage[-1] for each in await store.due("default", "a.example", 9)] == ["5", "4", "3"]
    names = [f"https://a.example/{number}" for number in (2, 9, 1)]
    found = await store.read_states("default", names)
    assert found == [await store.read_state("default", name) for name in names]
    assert await store.read_states("default", []) == []


RULE = Rule("duplicate_storm", 30, 600)
FAMILY = Subject("news", "f", "s", "a")
LETTERS = Rule("dead_letters", 30, 600)
PAST_MS = 1_600_000_000_000


@pytest.fixture
def namespace() -> str:
    return uuid.uuid4().hex[:12]


async def test_arrivals_that_two_workers_count_at_once_are_all_counted(redis_url: str, namespace: str) -> None:
    connection = IndexAddress(redis_url, "n", "s")
    async with open_client(connection) as one, open_client(connection) as other:
        stores = [TallyStore(client, namespace) for client in (one, other)]

        async def add(number: int) -> Tally:
            arrivals = [Arrival(1_000 * number, number, f"{number:032x}")]
            return await stores[number % 2].change(RULE, FAMILY, partial(count, RULE, FAMILY, arrivals, 1_000 * number))

        # In order of time, two at a time: what comes later than a window would be left out.
        for number in range(2, 42, 2):
            await asyncio.gather(add(number), add(number + 1))
        tally = await stores[0].change(RULE, FAMILY, lambda former: former)
        assert [each.number for each in tally.arrivals] == list(range(2, 42))
        assert [caused.alert.state for caused in tally.alerts] == ["firing"]


async def test_what_fires_is_listed_until_it_is_forgotten(redis_url: str, namespace: str) -> None:
    async with open_client(IndexAddress(redis_url, "n", "s")) as client:
        store = TallyStore(client, namespace)
        arrivals = [Arrival(place, 2 + place, f"{place:032x}") for place in range(31)]
        few = partial(count, RULE, FAMILY, arrivals[:30], 30)
        await store.change(RULE, FAMILY, few)
        assert [each async for each in store.firing()] == []
        await store.change(RULE, FAMILY, partial(count, RULE, FAMILY, arrivals, 31))
        assert [each async for each in store.firing()] == [(RULE.name, FAMILY)]
        ended = await store.change(RULE, FAMILY, partial(end_quiet, RULE, 10**9))
        assert not ended.is_firing
        await store.forget_firing(RULE, FAMILY)
        assert [each async for each in store.firing()] == []
        # What has alerted is kept for days, so that a redelivery finds it.
        (key,) = [key async for key in client.scan_iter(match=f"{{{namespace}:alert:*")]
        assert KEPT_MS < await client.pttl(key) <= KEPT_MS + 2 * RULE.window_ms


@pytest.mark.parametrize(
    ("begun", "rules", "states"),
    [
        (alert("f", since_ms=PAST_MS), (RULE,), ["resolved"]),  # in another namespace
        (
            alert("not_json", name="dead_letters", collection="*", since_ms=PAST_MS),
            (LETTERS,),
            ["resolved"],
        ),
        (alert("f", since_ms=PAST_MS), (), ["resolved"]),  # of a rule that was taken away
        (alert("f", name="new_family_of_size"), (RULE,), []),  # which has no end
    ],
)
async def test_an_alert_that_began_elsewhere_ends_once(
    redis_url: str, namespace: str, begun: Alert, rules: tuple[Rule, ...], states: list[str]
) -> None:
    health = Health(assigned=frozenset([("verdicts", 0)]), lags=(PartitionLag("verdicts", 0, 0, 0, 9, 0.0),))
    sent: list[Alert] = []

    async def send(records: Sequence[ProducerRecord]) -> None:
        sent.extend(msgspec.json.decode(record.value or b"", type=Alert) for record in records)

    async with open_client(IndexAddress(redis_url, "n", "s")) as client:
        store = TallyStore(client, namespace)
        alerting = Alerting(rules, store, "alerts", "s", DeadLetterWriter("dead", "", "alert"))
        for _ in range(2):
            await alerting.adopt([begun])
            await alerting.end_quiet(health, send)
        assert [(each.state, each.name, each.subject, each.since) for each in sent] == [
            (state, begun.name, begun.subject, begun.since) for state in states
        ]
        assert [each async for each in store.firing()] == []


async def test_the_list_of_what_fires_has_a_bound_and_room_for_what_silence_ends(
    redis_url: str, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tallies, "FIRING_MAX", 6)
    async with open_client(IndexAddress(redis_url, "n", "s")) as client:
        store = TallyStore(client, namespace)
        for name in ("new_family_of_size", "duplicate_storm"):
            for number in range(9):
                rule, subject = replace(RULE, name=name), Subject("news", f"f{number}", "s", "a")
                await store.change(rule, subject, partial(adopted, alert(subject.name, name=name)))
        listed = Counter([name async for name, _ in store.firing()])
        assert listed == {"new_family_of_size": 3, "duplicate_storm": 3}
