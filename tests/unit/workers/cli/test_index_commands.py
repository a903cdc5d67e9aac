"""Arguments and output of the index commands, without a server."""

import json
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from nearstream.streams.store.limits import IndexState
from nearstream.workers.cli.main import main
from nearstream.workers.cli.stats import index_lines, index_object, slot_lines, slot_object
from nearstream.workers.config.exit_codes import Exit
from nearstream.workers.config.settings import SettingsError, load
from nearstream.workers.pipeline.deployment import Deployment
from nearstream.workers.redis.reading.stats import ChunkFacts, SlotFacts
from nearstream.workers.redis.reading.totals import Totals

NOW_MS = 1_700_000_000_000
OBSERVED = "2023-11-14T22:13:20+00:00"
PART = SlotFacts(
    "{n:s:0}m", "ab" * 8, IndexState.READY, 199, NOW_MS, {1: 7, 0: 5},
    (ChunkFacts("band", 64, 3.25, 9), ChunkFacts("registry", 8, 201.0, 260)),
    {"bands": 3 * 1024, "records": 1024, "rest": 0},
)  # fmt: skip


@pytest.mark.parametrize("arguments", [["inspect"], ["index"], ["index", "drop"], ["stats", "x"], ["index", "grow"]])
def test_wrong_usage_is_told(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == Exit.USAGE
    assert "usage: nearstream" in capsys.readouterr().err


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


def test_a_slot_has_these_fields_in_json() -> None:
    assert json.loads(msgspec.json.encode(slot_object(PART, "s", 1))) == {
        "slot": 1,
        "scheme": "s",
        "state": "ready",
        "epoch": "ab" * 8,
        "documents": 199,
        "oldest_ms": NOW_MS,
        "memory_bytes": {"bands": 3072, "records": 1024, "rest": 0},
        "chunks": [
            {"kind": "band", "chunks": 64, "mean": 3.25, "largest": 9},
            {"kind": "registry", "chunks": 8, "mean": 201.0, "largest": 260},
        ],
        "checkpoints": {"1": 7, "0": 5},
    }


def test_an_operator_is_told_documents_families_and_what_redis_has_left() -> None:
    whole = Totals(24, 80, 4 * 1024**2, 16 * 1024**2)
    assert list(index_lines([replace(PART, oldest_ms=None), PART], whole, "n", 30 * 86_400)) == [
        "n: ready",
        f"documents     398 live, the oldest observed {OBSERVED}, kept for 30 days",
        "families      24 with 80 copies (estimated)",
        "memory        8.0 KiB (estimated), 21 bytes a document",
        "Redis         4.0 MiB used of maxmemory 16.0 MiB (25 %), room for about 599186 documents more",
    ]
    unlimited = list(index_lines([replace(PART, memory_bytes=None)], replace(whole, limit_bytes=0), "n", 0))
    assert unlimited[3:] == [
        "memory        unknown, because the Redis user may not run MEMORY USAGE",
        "Redis         4.0 MiB used, no maxmemory: set it, so that a full index pauses the workers",
    ]


def test_a_slot_is_told_with_what_is_due() -> None:
    assert list(slot_lines(PART, "n")) == [
        "n: ready",
        "documents     199 live",
        "memory        4.0 KiB (estimated), 21 bytes a document: bands 75 %, records 25 %",
        "chunks        band      64 of 3.25 fields on average, 9 at most",
        "              registry  8 of 201 fields on average, 260 at most"
        "  CROWDED: create a new index with a larger NEARSTREAM_INDEX_DOCUMENTS",
        "checkpoints   0: 5, 1: 7",
    ]
    assert list(slot_lines(replace(PART, checkpoints={}, documents=0, memory_bytes={}), "n"))[1:3] == [
        "documents     0 live",
        "memory        0 B (estimated)",
    ]


def test_an_empty_index_has_no_oldest_document() -> None:
    empty = replace(PART, documents=0, oldest_ms=None)
    whole = Totals(0, 0, 1024, 0)
    assert list(index_lines([empty], whole, "n", 0))[1] == "documents     0 live, kept without limit"
    told = index_object([empty, replace(PART, state=IndexState.LOST)], whole, "s", 0)
    assert (told["state"], told["documents"], told["oldest_ms"]) == ("lost, ready", 199, NOW_MS)
