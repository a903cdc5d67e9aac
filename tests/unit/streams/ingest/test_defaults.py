"""Defaults for the fields that a producer left out."""

from datetime import UTC, datetime, timedelta
from hashlib import blake2b

import pytest

from nearstream.schemas.documents.document import Document
from nearstream.schemas.topics.codec import InvalidMessageError
from nearstream.schemas.topics.dead_letter import Reason
from nearstream.streams.ingest.defaults import DocumentLimits, fill_defaults
from nearstream.streams.ingest.lineage import canonical_url

TIMESTAMP_MS = 1_772_439_300_000
TIME = datetime(2026, 3, 2, 8, 15, tzinfo=UTC)
PAGE = "https://a.example/x"


def completed(key: bytes | None = None, **fields: object) -> Document:
    return fill_defaults(Document(**{"text": "some text", **fields}), DocumentLimits(), TIMESTAMP_MS, key)  # type: ignore[arg-type]


def refusal(
    document: Document, timestamp_ms: int | None = TIMESTAMP_MS, bounds: DocumentLimits | None = None
) -> Reason:
    with pytest.raises(InvalidMessageError) as caught:
        fill_defaults(document, bounds or DocumentLimits(), timestamp_ms)
    return caught.value.reason


def test_a_url_full_of_tracking_parameters_is_done_in_a_moment() -> None:
    url = f"{PAGE}?" + "&".join(f"utm_{chr(97 + number % 26)}{'x' * (number // 26)}=1" for number in range(300))
    assert canonical_url(url) == PAGE


@pytest.mark.parametrize("url", [None, ""])
def test_without_url_and_lineage_there_is_no_lineage(url: str | None) -> None:
    assert completed(url=url).lineage is None


def test_a_canonical_url_over_512_characters_is_hashed() -> None:
    url = f"{PAGE}?a={'y' * 600}"
    assert completed(url=url).lineage == "h:" + blake2b(url.encode(), digest_size=16).hexdigest()


def test_a_derived_id_is_the_hash_of_its_parts_each_behind_its_length() -> None:
    state = blake2b(digest_size=16)
    for part in (b"news", str(TIMESTAMP_MS).encode(), "Brücke".encode()):
        state.update(len(part).to_bytes(4, "big") + part)
    assert completed(text="Brücke", collection="news").id == state.hexdigest()


def test_a_time_is_held_against_the_record_that_brought_it() -> None:
    bounds = DocumentLimits(clock_skew_seconds=60)
    ahead = Document(text="a", observed_at=TIME + timedelta(seconds=60))
    assert fill_defaults(ahead, bounds, TIMESTAMP_MS) is not None
    assert refusal(ahead, TIMESTAMP_MS - 1, bounds) is Reason.INVALID_TIME


def test_without_a_record_its_own_time_is_enough() -> None:
    far = datetime(2100, 1, 1, tzinfo=UTC)
    assert fill_defaults(Document(text="a", observed_at=far), DocumentLimits()).observed_at == far
