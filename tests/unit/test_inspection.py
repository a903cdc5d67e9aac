"""What a document that the index does not hold is said to be, by its newest record on the signatures topic."""

import re
import time
from datetime import UTC, datetime

import pytest

from schemas.codec import encode_signature
from schemas.document import Document
from schemas.record import Record
from streams.hashing import HashKey
from streams.scheme import Scheme, preset
from streams.signer import Signer
from workers.inspection import Standing, absent

KEY = HashKey.public()
SCHEME = preset("standard", KEY)
NOW_MS = time.time_ns() // 1_000_000
HOUR = 3_600


def signed(scheme: Scheme = SCHEME, text: str = "seven words that nobody has written before") -> bytes:
    document = Document(id="a", text=text, observed_at=datetime(2026, 3, 2, tzinfo=UTC))
    return encode_signature(Signer(scheme, KEY).sign(document))


@pytest.mark.parametrize(
    ("value", "offset", "age_seconds", "standing", "reason"),
    [
        (signed(), 7, 2 * HOUR, Standing.EXPIRED, "offset 7 of the signatures topic is older than the retention"),
        (signed(), 8, 0, Standing.WAITING, "offset 8 of the signatures topic has yet to be matched"),
        (None, 8, 0, Standing.WAITING, "has yet to be matched"),
        (None, 7, 0, Standing.REMOVED, "by partition 2 offset 7"),
        (signed(), 7, 0, Standing.UNKNOWN, "was matched, but the index does not hold it"),
        (
            signed(preset("compact", KEY)),
            8,
            0,
            Standing.UNKNOWN,
            "of another scheme: compact-.*, the index has standard-",
        ),
        (signed(text=" "), 8, 0, Standing.UNKNOWN, "holds the signature of an empty text"),
        (b"no signature", 8, 0, Standing.UNKNOWN, "holds no signature: "),
    ],
)
def test_the_newest_record_tells_what_became_of_it(
    value: bytes | None, offset: int, age_seconds: int, standing: Standing, reason: str
) -> None:
    record = Record("signatures", 2, offset, NOW_MS - 1_000 * age_seconds, b"default/a", value, [])
    told, why = absent(record, {2: 7}, SCHEME, HOUR)
    assert told is standing
    assert re.search(reason, why)


def test_what_never_expires_has_not_expired() -> None:
    record = Record("signatures", 2, 7, 0, b"default/a", signed(), [])
    assert absent(record, {2: 7}, SCHEME, 0)[0] is Standing.UNKNOWN


def test_without_a_record_nobody_knows_it() -> None:
    assert absent(None, {2: 7}, SCHEME, HOUR)[0] is Standing.UNKNOWN
