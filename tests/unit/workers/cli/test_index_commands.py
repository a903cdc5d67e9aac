"""Arguments and output of the index commands, without a server."""

import json
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from nearstream.schemas.signature import Origin, Signature
from nearstream.streams.index.family import FamilyFacts
from nearstream.streams.store.limits import IndexState
from nearstream.workers.cli.index_report import document_lines, document_object
from nearstream.workers.cli.main import main
from nearstream.workers.cli.stats_report import index_lines, shard_lines, shard_object
from nearstream.workers.config.exit_codes import Exit
from nearstream.workers.config.settings import SettingsError, load
from nearstream.workers.operations.inspection import DocumentStatus, Inspected
from nearstream.workers.pipeline.deployment import Deployment
from nearstream.workers.redis_index.document_facts import BucketFacts, DocumentFacts, MemberFacts, PairFacts, StateFacts
from nearstream.workers.redis_index.stats import ChunkFacts, HotBucket, ShardFacts
from nearstream.workers.redis_index.totals import Totals

DAY_MS = 86_400_000
NOW_MS = 1_700_000_000_000
OBSERVED = "2023-11-14T22:13:20+00:00"
SIGNATURE = Signature(
    "s", "default", "a", b"\1" * 16, b"\1" * 16, NOW_MS, 40, 38, 7, 3, False, b"", 16, b"", b"", b"",
    lineage="of\na", url="https://a.example", origin=Origin("documents", 2, 9), degraded=("charset_replaced",),
)  # fmt: skip
FAMILY = FamilyFacts("fa" * 16, 5, 8, 120, NOW_MS, NOW_MS, (1, 2, 3), "default/o")
MEMBER = MemberFacts(5, 37, FAMILY)
PAIRS = PairFacts(5, "near_duplicate", True), PairFacts(4, "version", True), PairFacts(3, "overlap", False)
CURRENT = StateFacts(8, (3, 17), SIGNATURE, 0, MEMBER, PAIRS, False, False, NOW_MS + 2 * DAY_MS + 3_600_000, 300)
FORMER = StateFacts(5, None, SIGNATURE, 8, None, (), False, True, None, 290)
BUCKETS = (
    BucketFacts("digest", "1:1000001", "d" * 16, 1, 12, 0),
    BucketFacts("band", "2:1000002", "b" * 16, 12, 12, 49),
    BucketFacts("band", "3:1000003", "c" * 16, 2, 12, 0),
    BucketFacts("anchor", "4:1000004", "a" * 16, 4, 50, 3),
)
PART = ShardFacts(
    "{n:s:0}m", "ab" * 8, IndexState.READY, 199, 260, 41, 40, 2, {1: 7, 0: 5},
    (ChunkFacts("band", 64, 3.25, 9), ChunkFacts("registry", 8, 201.0, 260)),
    {"bands": 3 * 1024, "records": 1024, "rest": 0}, 61, (HotBucket("band", "2:1000002", 49),),
)  # fmt: skip


@pytest.mark.parametrize("arguments", [["inspect"], ["index"], ["index", "drop"], ["stats", "x"], ["index", "grow"]])
def test_wrong_usage_is_told(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == Exit.USAGE
    assert "usage: nearstream" in capsys.readouterr().err


def test_settings_say_where_an_index_stands(tmp_path: Path) -> None:
    where = {"NEARSTREAM_REDIS": "rediss://h:1/0", "NEARSTREAM_REDIS_CLUSTER": "yes", "NEARSTREAM_INDEX_SHARDS": "12"}
    address = Deployment.of(load(where)).index_address()
    assert (address.cluster, address.shards, address.ca_path, address.beside) == (True, 12, None, False)
    absent = Deployment.of(load({**where, "NEARSTREAM_REDIS_CA_PATH": str(tmp_path / "none.pem")}))
    with pytest.raises(SettingsError, match="NEARSTREAM_REDIS_CA_PATH"):
        absent.index_address()
    usual = Deployment.of(load({}))
    assert usual.index_address() == replace(address, url=usual.settings.redis, cluster=False, shards=1)


@pytest.mark.parametrize(
    ("variable", "value"), [("REDIS_CLUSTER", "true"), ("INDEX_SHARDS", "0"), ("INDEX_SHARDS", "257")]
)
def test_forms_of_an_index_that_cannot_be_are_refused(variable: str, value: str) -> None:
    with pytest.raises(SettingsError, match=f"NEARSTREAM_{variable}: expected "):
        load({f"NEARSTREAM_{variable}": value})


def test_a_live_document_is_told_with_all_its_states_and_hot_buckets() -> None:
    told = list(document_lines(_inspected((CURRENT, FORMER)), NOW_MS))
    assert told == [
        "default/a\\u000a: live, expires in 2 d 1 h (2023-11-16T23:13:20+00:00)",
        "scheme        s",
        f"observed      {OBSERVED}",
        "size          38 characters, 7 words, 40 bytes",
        "lineage       of\\u000aa",
        "url           https://a.example",
        "origin        documents 2 offset 9",
        "degraded      charset_replaced",
        f"family        {'fa' * 16}, no. 37, 120 live",
        "              founded by default/o, represented by this state",
        "              joined: 1 in the last hour, 2 in the last day, 3 in the last week",
        "states          number  version                     signature         bytes  events  observed",
        f"                     8  0101010101010101  live      3 offset 17         300       2  {OBSERVED}",
        f"                     5  0101010101010101  expired   seen again          290       0  {OBSERVED}",
        "buckets       digest   1 with 1, of at most 12",
        "              band     1 with 2, 1 with 12, of at most 12",
        "              anchor   1 with 4, of at most 50",
        "  HOT         band     2:1000002: 12 of 12, overflowed 49 times",
        "  HOT         anchor   4:1000004: 4 of 50, overflowed 3 times",
    ]


@pytest.mark.parametrize(
    ("member", "told"),
    [
        (None, ["family        its own"]),
        (MemberFacts(8, 1, None), ["family        its own, without copies"]),
        (MemberFacts(5, 0, None), ["family        not decided yet, presumably a copy of number 5"]),
        (
            MemberFacts(5, 0, FAMILY),
            [
                f"family        {'fa' * 16}, not decided yet, presumably a copy of number 5",
                "              founded by default/o, represented by this state",
                "              joined: 1 in the last hour, 2 in the last day, 3 in the last week",
            ],
        ),
        (
            MemberFacts(8, 1, replace(FAMILY, number=8, representative=4)),
            [
                f"family        {'fa' * 16}, no. 1, 120 live",
                "              founded by this state, represented by number 4",
                "              joined: 1 in the last hour, 2 in the last day, 3 in the last week",
            ],
        ),
        (
            replace(MEMBER, facts=replace(FAMILY, founder="", representative=0)),
            [
                f"family        {'fa' * 16}, no. 37, 120 live",
                "              founded by number 5, represented by nobody",
                "              joined: 1 in the last hour, 2 in the last day, 3 in the last week",
            ],
        ),
    ],
)
def test_the_place_in_a_family_is_told(member: MemberFacts | None, told: list[str]) -> None:
    lines = list(document_lines(_inspected((replace(CURRENT, family=member),)), NOW_MS))
    assert lines[lines.index("degraded      charset_replaced") + 1 :][: len(told)] == told
    assert lines[lines.index("degraded      charset_replaced") + 1 + len(told)].startswith("states ")


def test_a_document_that_is_not_there_is_told_with_the_reason() -> None:
    inspected = Inspected("default/a", DocumentStatus.REMOVED, "by partition 3", "s", None)
    assert list(document_lines(inspected, NOW_MS)) == [
        "default/a: removed",
        "              by partition 3",
        "scheme        s",
    ]
    told = document_object(inspected)
    assert (told["status"], told["states"], told["buckets"]) == ("removed", [], [])


def test_a_document_has_these_fields_in_json() -> None:
    told = json.loads(msgspec.json.encode(document_object(_inspected((CURRENT, FORMER)))))
    signed = {
        "version": "01" * 8,
        "observed_at_ms": NOW_MS,
        "origin": {"topic": "documents", "partition": 2, "offset": 9},
        "lineage": "of\na",
        "url": "https://a.example",
        "source": None,
        "labels": {},
        "characters": 38,
        "words": 7,
        "bytes": 40,
        "degraded": ["charset_replaced"],
        "spared": False,
    }
    member = {
        "number": 5,
        "ordinal": 37,
        "family": "fa" * 16,
        "founder": "default/o",
        "representative": 8,
        "size": 120,
        "first_seen": "2023-11-14T22:13:20.000+00:00",
        "last_joined": "2023-11-14T22:13:20.000+00:00",
        "joined": {"hour": 1, "day": 2, "week": 3},
    }
    current = {"number": 8, "status": "live", "superseded_by": 0, "family": member, "events": 2, "record_bytes": 300}
    former = {"number": 5, "status": "expired", "superseded_by": 8, "family": None, "events": 0, "record_bytes": 290}
    end_ms = NOW_MS + 2 * DAY_MS + 3_600_000
    assert told.pop("states") == [
        {**signed, **current, "signature": {"partition": 3, "offset": 17}, "expires_at_ms": end_ms},
        {**signed, **former, "signature": None, "expires_at_ms": None},
    ]
    bucket = {
        "kind": "band",
        "name": "2:1000002",
        "key": "b" * 16,
        "entries": 12,
        "cap": 12,
        "overflows": 49,
        "holds": True,
    }
    assert told["buckets"][1] == {**bucket, "hot": True}
    assert [bucket["hot"] for bucket in told.pop("buckets")] == [False, True, False, True]
    assert told == {"document": "default/a\n", "status": "live", "reason": "", "scheme": "s"}


def test_a_shard_has_these_fields_in_json() -> None:
    assert json.loads(msgspec.json.encode(shard_object(PART, "s", 1))) == {
        "shard": 1,
        "scheme": "s",
        "state": "ready",
        "epoch": "ab" * 8,
        "documents": 199,
        "numbers": 260,
        "floor": 41,
        "rebuilt": 40,
        "kept": 2,
        "memory_bytes": {"bands": 3072, "records": 1024, "rest": 0},
        "chunks": [
            {"kind": "band", "chunks": 64, "mean": 3.25, "largest": 9},
            {"kind": "registry", "chunks": 8, "mean": 201.0, "largest": 260},
        ],
        "overflows": 61,
        "hottest": [{"kind": "band", "name": "2:1000002", "overflows": 49}],
        "checkpoints": {"1": 7, "0": 5},
    }


def test_an_operator_is_told_documents_families_and_what_redis_has_left() -> None:
    whole = Totals(NOW_MS, 24, 80, 4 * 1024**2, 16 * 1024**2)
    assert list(index_lines([PART, PART], whole, "n", 30 * 86_400)) == [
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


def test_a_shard_is_told_with_what_is_due() -> None:
    assert list(shard_lines(PART, "n")) == [
        "n: ready",
        "documents     199 live; 260 numbers given, those below 41 have expired",
        "              2 kept beyond their retention because an event names them",
        "              numbers up to 40 come from a rebuild",
        "memory        4.0 KiB (estimated), 21 bytes a document: bands 75 %, records 25 %",
        "chunks        band      64 of 3.25 fields on average, 9 at most",
        "              registry  8 of 201 fields on average, 260 at most"
        "  CROWDED: create a new index with a larger NEARSTREAM_INDEX_DOCUMENTS",
        "overflows     61, the hottest buckets:",
        "              band      2:1000002, 49 times",
        "checkpoints   0: 5, 1: 7",
    ]


def _inspected(states: tuple[StateFacts, ...]) -> Inspected:
    facts = DocumentFacts("default/a\n", states, BUCKETS)
    return Inspected("default/a\n", DocumentStatus.LIVE, "", "s", facts)
