"""Which events a removal voids, for consumers that apply retractions."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
import pytest

from nearstream.schemas.topics.codec import decode_event
from nearstream.schemas.verdicts.events import NearDuplicate, Retraction, is_void
from nearstream.schemas.verdicts.verdict import DocumentVerdict

EXAMPLES = Path(__file__).parents[4] / "schemas" / "examples"
NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)


def event(newer_offset: int = 5, older_offset: int = 9, older_at: datetime = NOON) -> NearDuplicate:
    """Return an event about c-7730 and an earlier a-1041.

    Their records are on partitions 5 and 3.
    """
    said = decode_event((EXAMPLES / "near_duplicate.json").read_bytes())
    assert isinstance(said, NearDuplicate)
    newer = msgspec.structs.replace(said.newer, partition=5, offset=newer_offset, sent_at=None)
    older = msgspec.structs.replace(said.older, partition=3, offset=older_offset, observed_at=older_at, sent_at=None)
    return msgspec.structs.replace(said, newer=newer, older=older)


def verdict(offset: int) -> DocumentVerdict:
    """Return the verdict about c-7730, a copy of a-1041, from a record on partition 5."""
    said = decode_event((EXAMPLES / "verdict.json").read_bytes())
    assert isinstance(said, DocumentVerdict)
    return msgspec.structs.replace(said, partition=5, offset=offset)


def removal(**fields: object) -> Retraction:
    """Return the removal of a-1041 by the record at offset 10 of partition 3."""
    said = decode_event((EXAMPLES / "retraction.json").read_bytes())
    assert isinstance(said, Retraction)
    return msgspec.structs.replace(said, **({"partition": 3, "offset": 10, "removed_at": NOON} | fields))


@pytest.mark.parametrize(("offset", "void"), [(9, True), (10, False), (11, False)])
@pytest.mark.parametrize("dated", [timedelta(days=-300), timedelta(0), timedelta(days=1)], ids=str)
def test_positions_decide_whatever_the_dates_are(offset: int, void: bool, dated: timedelta) -> None:
    assert is_void(event(older_offset=offset, older_at=NOON + dated), removal()) is void


@pytest.mark.parametrize("dated", [timedelta(days=-300), timedelta(0)], ids=str)
@pytest.mark.parametrize(("sent_ms", "void"), [(-1, True), (1000, True), (1001, False)])
def test_a_state_sent_after_the_removal_to_a_topic_made_anew_stays(dated: timedelta, sent_ms: int, void: bool) -> None:
    told = event(older_offset=3, older_at=NOON + dated)
    sent = msgspec.structs.replace(told.older, sent_at=NOON + timedelta(milliseconds=sent_ms))
    again = msgspec.structs.replace(told, older=sent)
    assert is_void(again, removal()) is void
    assert is_void(again, removal(partition=4)) is (sent_ms <= 0)


def test_either_document_of_an_event_may_be_the_removed_one() -> None:
    assert is_void(event(newer_offset=9), removal(document_id="c-7730", partition=5))
    assert not is_void(event(newer_offset=11), removal(document_id="c-7730", partition=5))


@pytest.mark.parametrize(("offset", "void"), [(9, True), (10, False), (11, False)])
def test_a_verdict_is_void_once_its_document_is_removed(offset: int, void: bool) -> None:
    assert is_void(verdict(offset), removal(document_id="c-7730", partition=5)) is void


def test_the_removal_of_its_counterpart_leaves_a_verdict_valid() -> None:
    assert not is_void(verdict(9), removal(document_id="a-1041", partition=3, offset=10**9))


@pytest.mark.parametrize("other", [{"document_id": "x"}, {"collection": "mail"}])
def test_an_event_about_other_documents_stays_valid(other: dict[str, str]) -> None:
    assert not is_void(event(), removal(**other))


@pytest.mark.parametrize("other", [{"partition": 4}, {"topic": "other"}, {"offset": msgspec.UNSET}])
def test_without_a_common_partition_the_time_of_observation_decides(other: dict[str, object]) -> None:
    assert is_void(event(older_offset=99), removal(**other))
    assert not is_void(event(older_offset=0, older_at=NOON + timedelta(seconds=1)), removal(**other))
