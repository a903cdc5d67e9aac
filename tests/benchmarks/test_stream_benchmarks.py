"""The benchmark of the whole stream makes its documents by a seed, and its stages add up to the process."""

import asyncio
from itertools import pairwise
from typing import Any

import pytest

from benchmarks.stream import figures, texts
from benchmarks.stream.figures import (
    Moment,
    cost,
    gates,
    interval,
    later_median,
    ratios,
    slower_median,
    table,
    times_of,
)
from benchmarks.stream.latency import Way
from benchmarks.stream.loops import STAGES
from benchmarks.stream.prose import Prose, sources
from benchmarks.stream.reporting import Hop, Report
from benchmarks.stream.stages import EVENT_LOOP, OTHER_THREADS, StageClock, whole
from benchmarks.stream.texts import STREAMS, Record

TEXTS = sources(None)


def made(stream: str, count: int = 300, seed: int = 1) -> list[Record]:
    return STREAMS[stream](Prose(TEXTS, seed), count, seed)


def shingles(text: str) -> set[tuple[str, ...]]:
    words = text.split()
    return set(zip(*(words[start:] for start in range(5)), strict=False))


def common(one: str, other: str) -> float:
    """Return the resemblance of two texts."""
    first, second = shingles(one), shingles(other)
    return len(first & second) / len(first | second)


@pytest.mark.parametrize("stream", STREAMS)
def test_a_seed_makes_the_same_documents_and_another_seed_others(stream: str) -> None:
    first = made(stream, 60)
    assert first == made(stream, 60)
    assert first != made(stream, 60, 2)
    assert len(first) == 60


@pytest.mark.parametrize("stream", STREAMS)
def test_more_documents_of_a_stream_are_of_the_same_size(stream: str) -> None:
    lengths = [len(record.text) for record in made(stream)]
    assert min(lengths) > 100
    assert max(lengths) < 20_000


def test_paragraphs_are_real_until_all_are_used_and_then_woven_of_fragments() -> None:
    text = "\n\n".join(" ".join(f"w{part}x{at}" for at in range(30)) for part in range(3))
    prose = Prose([text, text], 1)
    real = [" ".join(prose.paragraph()) for _ in range(3)]
    assert sorted(real) == text.split("\n\n")
    woven = prose.words(200)
    assert set(woven) <= set(text.split())
    assert max(common(" ".join(woven), each) for each in real) < 0.05


def test_one_in_ten_unique_documents_is_nearly_another() -> None:
    texts = [record.text for record in made("unique", 40)]
    near = [max(common(texts[at], text) for text in texts[:at]) > 0.9 for at in range(1, 40)]
    assert sum(near) == 4


def test_a_crawl_fetches_a_third_again_and_its_sites_have_frames() -> None:
    records = made("crawl", 900)
    urls = [record.key for record in records]
    assert 0.25 < 1 - len(set(urls)) / len(urls) < 0.42
    site = [record.text for record in records if record.key.startswith("https://site-7.")]
    assert all(common(one, other) > 0 for one, other in pairwise(site))
    last = {record.key: record.text for record in records}
    changed = [record for record in records if last[record.key] != record.text]
    assert all(common(record.text, last[record.key]) > 0.2 for record in changed)


def test_mails_are_campaigns_replies_and_notices() -> None:
    texts = [record.text for record in made("mail", 200)]
    assert sum("On that day they wrote:" in text for text in texts) > 20
    campaign = [text for text in texts if "Your number is" in text]
    assert len(campaign) > 100
    assert len(set(texts)) == len(texts)
    assert max(common(campaign[0], text) for text in campaign[1:]) > 0.7


def test_a_state_of_a_document_is_near_the_one_before_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(texts, "_EDITED", 15)
    states: dict[str, list[str]] = {}
    for record in made("revisions", 700):
        states.setdefault(record.key.partition("/")[0], []).append(record.text)
    assert max(map(len, states.values())) == 20
    assert len(states) > 30
    near = [common(*both) for each in states.values() for both in pairwise(each)]
    assert min(near) > 0.2
    assert sum(near) / len(near) > 0.7


def clock_of(*times: float) -> StageClock:
    waiting = iter(times)
    return StageClock(lambda: next(waiting))


def test_a_stage_within_a_stage_counts_for_itself_only() -> None:
    clock = clock_of(10, 11, 13, 17)
    with clock.stage("outer"), clock.stage("inner"):
        pass
    assert clock.seconds == {"outer": 1 + 4, "inner": 2}
    assert clock.longest == 7


def test_a_coroutine_counts_while_it_runs_and_keeps_its_result_and_errors() -> None:
    class Owner:
        async def answer(self, number: int) -> int:
            await asyncio.sleep(0)
            if number < 0:
                raise ValueError("negative")
            return number + 1

        def twice(self, number: int) -> int:
            return 2 * number

    clock = StageClock()
    clock.measure(Owner, "answer", "asked")
    clock.measure(Owner, "twice", "doubled")
    assert asyncio.run(Owner().answer(Owner().twice(2))) == 5
    with pytest.raises(ValueError, match="negative"):
        asyncio.run(Owner().answer(-1))
    assert set(clock.seconds) == {"asked", "doubled"}


def test_a_cancelled_coroutine_learns_of_it() -> None:
    told = []

    class Owner:
        async def wait(self) -> None:
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                told.append("cancelled")
                raise

    async def cancel() -> None:
        waiting = asyncio.ensure_future(Owner().wait())
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting

    StageClock().measure(Owner, "wait", "waited")
    asyncio.run(cancel())
    assert told == ["cancelled"]


def test_every_stage_of_a_worker_exists_in_the_product() -> None:
    for owner, name, _ in STAGES:
        assert hasattr(owner, name), f"{owner} has no {name}"


def report(at: float, ends: dict[int, int], stages: dict[str, float], compared: float = 0) -> Report:
    return Report(at, at, ends, stages, 0.01, compared)


def moments() -> tuple[Moment, Moment]:
    first = whole({"sign": 0.1}, main_thread=0.3, process=0.5)
    last = whole({"sign": 0.4, "match": 0.2}, main_thread=1.0, process=1.3)
    return (
        Moment([report(10, {0: 20, 1: 0}, first, 5)], {"redis": 1.0, "broker": 2.0}),
        Moment([report(12, {0: 60, 1: 60}, last, 105)], {"redis": 1.5, "broker": 2.1}),
    )


def test_the_stages_add_up_to_the_process() -> None:
    found = cost(*moments())
    assert found["documents"] == 100
    assert found["documents_per_second"] == 50
    assert found["cpu_us"] == {"worker": 8_000, "redis": 5_000, "broker": 1_000, "all": 14_000}
    assert {name: each["us"] for name, each in found["stages"].items()} == {
        "sign": 3_000,
        "match": 2_000,
        EVENT_LOOP: 2_000,
        OTHER_THREADS: 1_000,
    }
    assert sum(each["share"] for each in found["stages"].values()) == pytest.approx(1)
    assert found["comparisons"] == 1


def test_a_document_that_two_workers_acknowledged_counts_once() -> None:
    both = Moment([report(1, {0: 30, 1: 10}, {}), report(1, {0: 25, 2: 5}, {})], {})
    assert both.documents == 45


def test_figures_need_an_acknowledgement_after_the_first() -> None:
    first, _ = moments()
    with pytest.raises(ValueError, match="more documents"):
        cost(first, first)


def loops_at(**rates: float) -> dict[str, dict[str, Any]]:
    one = {**cost(*moments()), "longest_step_ms": 60.0, "redis_bytes": 5}
    return {name.replace("_", "-"): {**one, "documents_per_second": rate} for name, rate in rates.items()}


def latencies_at(*loads: float, p99: float) -> list[dict[str, Any]]:
    one = {
        "documents_per_second": 500,
        "cpu_us": {"worker": 13_000.0, "redis": 3_250.0, "broker": 9.0},
        "p50": 1.0,
        "p99": p99,
        "hops": {name: {"p50": 0.1, "p99": 0.2} for name in figures.HOPS},
    }
    return [{"load": load, **one} for load in loads]


def test_ratios_are_those_of_the_worker_and_gates_name_what_is_missed() -> None:
    loops = loops_at(bare=5_000.0, by_hand=100.0, by_hand_batched=400.0, worker=1_000.0, worker_by_stage=900.0)
    loops["worker"]["longest_step_ms"] = None
    compared = ratios({name: [run] for name, run in loops.items()})
    assert compared == {"bare": 0.2, "by-hand": 10.0, "by-hand-batched": 2.5}
    found = gates("crawl", loops, compared, latencies_at(0.5, 0.1, p99=90.0))
    assert [gate["ok"] for gate in found.values()] == [True, False, False, True, False, True, False]
    assert found["documents a second / by hand"] == {"value": 10.0, "limit": 9.0, "ok": True}
    assert found["CPU of worker and Redis at half load / full"]["value"] == 1.25
    not_measured = gates("unique", loops, compared, latencies_at(0.3, p99=90.0)).values()
    assert [gate["ok"] for gate in not_measured] == [False, False, False, None, None, None, False]
    assert set(figures.RATIOS) == set(figures.CPU_US) == set(STREAMS)


def test_rounds_are_enough_when_the_interval_of_their_ratio_is_narrow() -> None:
    def runs(*rates: float) -> list[dict[str, Any]]:
        return [{"documents_per_second": rate} for rate in rates]

    assert interval(runs(900), runs(100)) == 1
    assert interval(runs(900, 450, 800), runs(100, 50, 90)) < 0.2
    assert interval(runs(900, 900, 900), runs(100, 100, 100)) == 0
    wide, narrow = (interval(runs(*[900, 1_000] * count), runs(*[100] * 2 * count)) for count in (1, 8))
    assert wide > 0.9
    assert narrow < 0.05


def test_the_hops_of_a_document_add_up_to_its_way() -> None:
    def hop(step: str, number: int, *times: int) -> Hop:
        return Hop(step, number, *(10**6 * at for at in times))

    ways = [Way(0, 30 * 10**6)] * 2
    hops = [hop("sign", at, 2, 4, 7) for at in (0, 1)] + [hop("match", at, 10, 15, 29) for at in (0, 1)]
    found = times_of(ways, [*hops, hop("match", 1, 90, 91, 92)])
    assert (found["p50"], found["p99"]) == (30, 30)
    assert [each["p50"] for each in found["hops"].values()] == [2, 5, 3, 5, 14, 1]


def test_a_ratio_is_the_median_of_the_rounds_because_the_machine_may_become_slower() -> None:
    rounds = [
        loops_at(by_hand=100.0, worker=1_000.0),
        loops_at(by_hand=50.0, worker=550.0),
        loops_at(by_hand=90.0, worker=450.0),
    ]
    runs = {name: [each[name] for each in rounds] for name in rounds[0]}
    assert ratios({**runs, "bare": [loops_at(bare=2_200.0)["bare"]]}) == {"by-hand": 10.0, "bare": 0.25}
    assert slower_median(runs["worker"])["documents_per_second"] == 550
    assert slower_median(runs["worker"][:2])["documents_per_second"] == 550
    assert [later_median([{"p99": each} for each in p99s])["p99"] for p99s in ([3, 1, 2], [1, 2])] == [2, 2]


def test_the_table_shows_every_loop_every_stage_and_every_gate() -> None:
    loops = loops_at(bare=5_000.0, by_hand=100.0, by_hand_batched=200.0, worker=1_000.0, worker_by_stage=900.0)
    compared, latencies = {"bare": 0.2, "by-hand": 10.0, "by-hand-batched": 5.0}, latencies_at(0.25, p99=9.0)
    shown = table(
        {
            "stream": "mail",
            "documents": 100,
            "characters": 5_000,
            "rounds": {"worker": [1_000.0, 900.0]},
            "interval": 0.08,
            "loops": loops,
            "ratios": compared,
            "latencies": latencies,
            "gates": gates("mail", loops, compared, latencies),
        }
    )
    assert all(f"| {name} |" in shown for name in (*loops, EVENT_LOOP, "sign", "documents a second / by hand"))
    assert "| 0.25 (500/s) | 1.0, 9.0 | 0.1, 0.2 |" in shown
    assert "| ms from produce to event at 0.5 of the rate, p99 | None | 150 | not measured |" in shown
    assert "median of 2 rounds" in shown
    assert "interval of the ratio to by-hand 8%" in shown
    assert "missed" in shown
