"""The size of an index and its families, as a person reads them and as JSON."""

import io
import json
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
import pytest

from nearstream import Document, HashKey, Matcher, Signer, local_store, preset
from nearstream.streams.matching.family import FamilyFacts, families_of
from nearstream.streams.store.limits import IndexState
from nearstream.workers.cli import stats
from nearstream.workers.cli.events import COLUMNS
from nearstream.workers.cli.stats import (
    best,
    family_lines,
    family_report,
    index_lines,
    index_report,
    selected,
    slot_lines,
    summary_lines,
)
from nearstream.workers.config.settings import SettingsError, load
from nearstream.workers.operations.terminal import Progress, columns
from nearstream.workers.pipeline.deployment import Deployment
from nearstream.workers.redis.reading.stats import ChunkFacts, SlotFacts, Totals
from tests.support.forged import FORGED, dangerous

BEGIN = datetime(2026, 3, 2, 8, tzinfo=UTC)
BEGIN_MS = round(1000 * BEGIN.timestamp())
HOUR_MS = 3_600_000

NOW_MS = 1_700_000_000_000
OBSERVED = "2023-11-14T22:13:20+00:00"
PART = SlotFacts(
    "{n:s:0}m", "ab" * 8, IndexState.READY, 199, NOW_MS, {1: 7, 0: 5},
    (ChunkFacts("band", 64, 3.25, 9), ChunkFacts("registry", 8, 201.0, 260)),
    {"bands": 3 * 1024, "records": 1024, "rest": 0},
)  # fmt: skip


def family(number: int, size: int, joined: tuple[int, int, int] = (0, 0, 0), founder: str = "") -> FamilyFacts:
    name = founder or f"default/d{number}"
    return FamilyFacts(f"{number:032x}", number, number, size, BEGIN_MS, BEGIN_MS + HOUR_MS, joined, name)


async def storms(*sizes: int, days: int = 0) -> list[FamilyFacts]:
    """Return the families of storms of each size, the documents a minute apart, asked `days` after the last."""
    now = BEGIN
    store = local_store(clock=lambda: round(1000 * now.timestamp()))
    key = HashKey.public()
    scheme = preset("fine", key)
    signer, matcher = Signer(scheme, key), Matcher(store, scheme, key)
    numbers = []
    for storm, size in enumerate(sizes):
        text = " ".join(f"word{storm}x{place}" for place in range(60))
        for copy in range(size):
            now += timedelta(minutes=1)
            matched = await matcher.match(signer.sign(Document(id=f"{storm}-{copy}", text=text, observed_at=now)))
            numbers.append(matched.registered.number)
    now += timedelta(days=days)
    return await families_of(store, numbers)


async def test_the_largest_families_are_told_first() -> None:
    found = await storms(3, 5, 1, 2)
    assert list(family_lines(found, 2)) == [
        "the largest families:",
        "     size      hour       day      week  last joined                founder",
        "        5         4         4         4  2026-03-02T08:08:00+00:00  default/1-0",
        "        3         2         2         2  2026-03-02T08:03:00+00:00  default/0-0",
        "the fastest growing: those that most documents joined in the last hour, else day, else week:",
        "     size      hour       day      week  last joined                founder",
        "        5         4         4         4  2026-03-02T08:08:00+00:00  default/1-0",
        "        3         2         2         2  2026-03-02T08:03:00+00:00  default/0-0",
    ]


async def test_families_that_do_not_grow_are_only_large_and_those_of_one_are_not_told() -> None:
    lines = list(family_lines(await storms(3, days=8), 9))
    assert [line.split()[:4] for line in lines[2:]] == [["3", "0", "0", "0"]]
    alone = await storms(1, 1)
    assert [*summary_lines(alone), *family_lines(alone, 5)] == []


async def test_a_scan_is_summed_up_in_a_few_lines() -> None:
    found = await storms(3, 5, 1, 2)
    assert list(summary_lines(found)) == [
        "3 families with 7 copies, the largest:",
        "        5  1-0",
        "        3  0-0",
        "        2  3-0",
    ]
    many = list(summary_lines([family(number, 2) for number in range(1, 1000)]))
    assert (many[0], len(many)) == ("999 families with 999 copies, the largest:", 6)
    assert next(summary_lines([family(1, 2)])) == "1 family with 1 copy, the largest:"


def test_families_that_grew_in_the_last_hour_come_before_those_that_grew_before_it() -> None:
    large, slow, quick = family(1, 900), family(2, 20, (0, 50, 90)), family(3, 10, (4, 4, 4))
    lines = list(family_lines([slow, large, quick], 2))
    assert [line.split()[-1] for line in lines if "default/" in line] == [
        "default/d1",
        "default/d2",
        "default/d3",
        "default/d2",
    ]
    assert best([slow, large, quick], 1) == [large, quick]


def test_a_family_that_was_read_twice_is_told_once() -> None:
    """A walk through the keys of a server may meet one of them again."""
    families = [family(number, 2, (1, 1, 1)) for number in (1, 2, 1, 1)]
    assert [each.number for each in best(families, 3)] == [1, 2]
    assert [line.split()[-1] for line in family_lines(families, 3) if "default/" in line] == [
        "default/d1",
        "default/d2",
        "default/d1",
        "default/d2",
    ]


def test_a_founder_that_is_gone_is_told_as_such() -> None:
    gone = FamilyFacts("ab" * 16, 7, 0, 2, BEGIN_MS, BEGIN_MS, (0, 0, 0))
    assert list(family_lines([gone], 1))[-1].endswith(f"  (gone) family {'ab' * 16}")
    told = family_report(gone)
    assert (told.founder, told.representative) == (None, None)


def test_a_family_has_these_fields_in_json() -> None:
    assert json.loads(msgspec.json.encode(family_report(family(5, 9, (1, 2, 3))))) == {
        "id": f"{5:032x}",
        "founder": "default/d5",
        "representative": 5,
        "size": 9,
        "first_seen": "2026-03-02T08:00:00Z",
        "last_joined": "2026-03-02T09:00:00Z",
        "joined": {"hour": 1, "day": 2, "week": 3},
    }


@pytest.mark.parametrize("name", [FORGED[0], "x" * 600, "日本" * 200])
def test_s16_a_family_is_told_in_lines_of_120_columns(name: str) -> None:
    families = [family(1, 10**9, (10**8,) * 3, f"default/{name}")]
    for line in (*family_lines(families, 1), *summary_lines(families)):
        assert columns(line) <= COLUMNS
        assert not dangerous(line)
        assert line.splitlines() == [line]


async def test_what_is_selected_of_many_families_are_the_best_of_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stats, "HELD", 5)
    families = [
        family(number, 2 + number * 7919 % 101, (number % 13, number % 17, number % 19)) for number in range(1, 200)
    ]

    async def stored() -> AsyncIterator[FamilyFacts]:
        for each in families:
            yield each

    progress = Progress("read families", stream=io.StringIO())
    assert await selected(stored(), 4, progress) == best(families, 4)
    assert progress.done == len(families)


def test_settings_say_where_an_index_stands(tmp_path: Path) -> None:
    where = {"NEARSTREAM_REDIS": "rediss+cluster://h:1/0", "NEARSTREAM_INDEX_SLOTS": "12"}
    address = Deployment.of(load(where)).index_address()
    assert (address.cluster, address.slots, address.ca_path, address.beside) == (True, 12, None, False)
    absent = Deployment.of(load({**where, "NEARSTREAM_REDIS_CA_PATH": str(tmp_path / "none.pem")}))
    with pytest.raises(SettingsError, match="NEARSTREAM_REDIS_CA_PATH"):
        absent.index_address()
    usual = Deployment.of(load({}))
    assert usual.index_address() == replace(address, url=usual.settings.redis, cluster=False, slots=1)


@pytest.mark.parametrize(
    ("variable", "value"), [("REDIS", "redis+clusters://h:1"), ("INDEX_SLOTS", "0"), ("INDEX_SLOTS", "257")]
)
def test_forms_of_an_index_that_cannot_be_are_refused(variable: str, value: str) -> None:
    with pytest.raises(SettingsError, match=f"NEARSTREAM_{variable}: expected "):
        load({f"NEARSTREAM_{variable}": value})


def told(slots: list[SlotFacts], whole: Totals, retention_seconds: int) -> list[str]:
    return list(index_lines(index_report(slots, whole, [], "s", retention_seconds), "n"))


def test_an_operator_is_told_documents_families_and_what_redis_has_left() -> None:
    whole = Totals(24, 80, 4 * 1024**2, 16 * 1024**2)
    assert told([replace(PART, oldest_ms=None), PART], whole, 30 * 86_400) == [
        "n: ready",
        f"documents        398 live, the oldest observed {OBSERVED}, kept for 30 days",
        "families         24 with 80 copies (estimated)",
        "memory           8.0 KiB (estimated), 21 bytes a document",
        "Redis            4.0 MiB used of maxmemory 16.0 MiB (25 %), room for about 599186 documents more",
    ]
    unlimited = told([replace(PART, memory_bytes=None)], replace(whole, limit_bytes=0), 0)
    assert unlimited[3:] == [
        "memory           unknown, because the Redis user may not run MEMORY USAGE",
        "Redis            4.0 MiB used, no maxmemory: set it, so that a full index pauses the workers",
    ]


def test_a_slot_is_told_with_what_is_due() -> None:
    assert list(slot_lines(PART, "n")) == [
        "n: ready",
        "documents        199 live",
        "memory           4.0 KiB (estimated), 21 bytes a document: bands 75 %, records 25 %",
        "chunks           band      64 of 3.25 fields on average, 9 at most",
        "                 registry  8 of 201 fields on average, 260 at most"
        "  CROWDED: create a new index with a larger NEARSTREAM_INDEX_DOCUMENTS",
        "checkpoints      0: 5, 1: 7",
    ]
    assert list(slot_lines(replace(PART, checkpoints={}, documents=0, memory_bytes={}), "n"))[1:3] == [
        "documents        0 live",
        "memory           0 B (estimated)",
    ]


def test_an_empty_index_has_no_oldest_document() -> None:
    empty = replace(PART, documents=0, oldest_ms=None)
    whole = Totals(0, 0, 1024, 0)
    assert told([empty], whole, 0)[1] == "documents        0 live, kept without limit"
    report = index_report([empty, replace(PART, state=IndexState.LOST)], whole, [], "s", 0)
    assert (report.state, report.documents, report.oldest_ms) == ("lost, ready", 199, NOW_MS)
