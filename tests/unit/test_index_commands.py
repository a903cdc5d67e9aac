"""What the commands about the index take and say, without a server."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from schemas.signature import Origin, Signature
from streams.index import IndexState
from workers.assembly import hash_key, index_address
from workers.cli import main
from workers.exits import Exit
from workers.index_view import document_lines, document_object, part_lines, part_object
from workers.inspection import Inspected, Standing
from workers.redis_inspect import BucketFacts, DocumentFacts, StateFacts
from workers.redis_stats import ChunkFacts, HotBucket, PartFacts
from workers.settings import SettingsError, load

ROOT = Path(__file__).parent.parent.parent
DAY_MS = 86_400_000
NOW_MS = 1_700_000_000_000
SIGNATURE = Signature(
    "s", "default", "a", b"\1" * 16, b"\1" * 16, NOW_MS, 40, 38, 7, 3, False, b"", 16, b"", b"", b"",
    lineage="of\na", url="https://a.example", origin=Origin("documents", 2, 9), degraded=("charset_replaced",),
)  # fmt: skip
CURRENT = StateFacts(8, (3, 17), SIGNATURE, 0, 2, False, False, NOW_MS + 2 * DAY_MS + 3_600_000, 300)
FORMER = StateFacts(5, None, SIGNATURE, 8, 0, False, True, None, 290)
BUCKETS = (
    BucketFacts("digest", "1:1000001", "d" * 16, 1, 12, 0),
    BucketFacts("band", "2:1000002", "b" * 16, 12, 12, 49),
    BucketFacts("band", "3:1000003", "c" * 16, 2, 12, 0),
    BucketFacts("anchor", "4:1000004", "a" * 16, 4, 50, 3),
)
PART = PartFacts(
    "{n:s:0}m", "ab" * 8, IndexState.READY, 199, 260, 41, 40, 2, {1: 7, 0: 5},
    (ChunkFacts("band", 64, 3.25, 9), ChunkFacts("registry", 8, 201.0, 260)),
    {"bands": 3 * 1024, "records": 1024, "rest": 0}, 61, (HotBucket("band", "2:1000002", 49),),
)  # fmt: skip


@pytest.mark.parametrize("page", ["docs/operations.md", "README.md"])
def test_every_documented_command_exists(page: str, capsys: pytest.CaptureFixture[str]) -> None:
    text = (ROOT / page).read_text()
    told = re.findall(r"^nearstream ([a-z -]+?)(?: -| [A-Z]| [a-z]+/| *2>|  |$)", text, re.MULTILINE)
    assert len(told) >= 5
    for command in told:
        with pytest.raises(SystemExit) as ended:
            main([*command.split(), "--help"])
        assert (command, ended.value.code) == (command, 0)
    capsys.readouterr()


@pytest.mark.parametrize("arguments", [["inspect"], ["index"], ["index", "drop"], ["stats", "x"], ["index", "grow"]])
def test_wrong_usage_is_told(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == Exit.USAGE
    assert "usage: nearstream" in capsys.readouterr().err


def test_settings_say_where_an_index_stands(tmp_path: Path) -> None:
    where = {"NEARSTREAM_REDIS": "rediss://h:1/0", "NEARSTREAM_REDIS_CLUSTER": "yes", "NEARSTREAM_INDEX_PARTS": "12"}
    settings = load(where)
    address = index_address(settings, hash_key(settings))
    assert (address.cluster, address.parts, address.ca_path, address.beside) == (True, 12, None, False)
    absent = load({**where, "NEARSTREAM_REDIS_CA_PATH": str(tmp_path / "none.pem")})
    with pytest.raises(SettingsError, match="NEARSTREAM_REDIS_CA_PATH"):
        index_address(absent, hash_key(absent))
    usual = load({})
    assert index_address(usual, hash_key(usual)) == replace(address, url=usual.redis, cluster=False, parts=1)


@pytest.mark.parametrize(
    ("variable", "value"), [("REDIS_CLUSTER", "true"), ("INDEX_PARTS", "0"), ("INDEX_PARTS", "257")]
)
def test_forms_of_an_index_that_cannot_be_are_refused(variable: str, value: str) -> None:
    with pytest.raises(SettingsError, match=f"NEARSTREAM_{variable}"):
        load({f"NEARSTREAM_{variable}": value})


def test_a_live_document_is_told_with_all_its_states_and_hot_buckets() -> None:
    told = list(document_lines(_inspected((CURRENT, FORMER)), NOW_MS))
    assert told == [
        "default/a\\u000a: live, expires in 2 d 1 h (2023-11-16 23:13:20 UTC)",
        "scheme        s",
        "observed      2023-11-14 22:13:20 UTC",
        "size          38 characters, 7 words, 40 bytes",
        "lineage       of\\u000aa",
        "url           https://a.example",
        "origin        documents 2 offset 9",
        "degraded      charset_replaced",
        "states          number  version                     signature         bytes  events  observed",
        "                     8  0101010101010101  live      3 offset 17         300       2  2023-11-14 22:13:20 UTC",
        "                     5  0101010101010101  expired   seen again          290       0  2023-11-14 22:13:20 UTC",
        "buckets       digest   1 with 1, of at most 12",
        "              band     1 with 2, 1 with 12, of at most 12",
        "              anchor   1 with 4, of at most 50",
        "  HOT         band     2:1000002: 12 of 12, overflowed 49 times",
        "  HOT         anchor   4:1000004: 4 of 50, overflowed 3 times",
    ]


def test_a_document_that_is_not_there_is_told_with_the_reason() -> None:
    inspected = Inspected("default/a", Standing.REMOVED, "by partition 3", "s", None)
    assert list(document_lines(inspected, NOW_MS)) == [
        "default/a: removed",
        "              by partition 3",
        "scheme        s",
    ]
    told = document_object(inspected)
    assert (told["standing"], told["states"], told["buckets"]) == ("removed", [], [])


def test_programs_read_the_same() -> None:
    told = document_object(_inspected((CURRENT, FORMER)))
    assert [state["standing"] for state in told["states"]] == ["live", "expired"]
    assert [state["signature"] for state in told["states"]] == [{"partition": 3, "offset": 17}, None]
    assert [bucket["hot"] for bucket in told["buckets"]] == [False, True, False, True]
    assert part_object(PART, "s", 1)["checkpoints"] == {1: 7, 0: 5}


def test_an_index_is_told_with_what_is_due() -> None:
    assert list(part_lines(PART, "n")) == [
        "n: ready",
        "documents     199 live (estimated); 260 numbers given, those below 41 have expired",
        "              2 kept beyond their retention by what was found like them",
        "              numbers up to 40 come from a rebuild",
        "memory        4.0 KiB (estimated), 21 bytes a document: bands 75 %, records 25 %",
        "chunks        band      64 of 3.25 fields on average, 9 at most",
        "              registry  8 of 201 fields on average, 260 at most"
        "  CROWDED: a larger NEARSTREAM_INDEX_DOCUMENTS is due",
        "overflows     61, the hottest buckets:",
        "              band      2:1000002, 49 times",
        "checkpoints   0: 5, 1: 7",
    ]


def _inspected(states: tuple[StateFacts, ...]) -> Inspected:
    facts = DocumentFacts("default/a\n", states, BUCKETS)
    return Inspected("default/a\n", Standing.LIVE, "", "s", facts)
