"""The newest record on the signatures topic explains why a document is absent."""

import re
import time
from datetime import UTC, datetime

from nearstream.schemas.documents.document import Document
from nearstream.schemas.documents.record import ConsumerRecord
from nearstream.schemas.topics.codec import encode_signature
from nearstream.streams.fingerprints.hashing import HashKey
from nearstream.streams.signing.scheme import Scheme, preset
from nearstream.streams.signing.signer import Signer
from nearstream.workers.operations.inspection import explain_absence

KEY = HashKey.public()
SCHEME = preset("fine", KEY)
NOW_MS = time.time_ns() // 1_000_000
HOUR = 3_600


def signed(scheme: Scheme = SCHEME, text: str = "seven words that nobody has written before") -> bytes:
    document = Document(id="a", text=text, observed_at=datetime(2026, 3, 2, tzinfo=UTC))
    return encode_signature(Signer(scheme, KEY).sign(document))


def test_the_newest_record_tells_what_became_of_it() -> None:
    for value, offset, age_seconds, status, expected in (
        (signed(), 7, 2 * HOUR, "expired", "offset 7 of the signatures topic is older than the retention"),
        (signed(), 8, 0, "waiting", "offset 8 of the signatures topic is not matched yet"),
        (None, 8, 0, "waiting", "is not matched yet"),
        (None, 7, 0, "removed", "by partition 2 offset 7"),
        (signed(), 7, 0, "unknown", "was matched, but the index does not hold it"),
        (
            signed(preset("compact", KEY)),
            8,
            0,
            "unknown",
            "of another scheme: compact-.*, the index has fine-",
        ),
        (signed(text=" "), 8, 0, "unknown", "holds the signature of an empty text"),
        (b"no signature", 8, 0, "unknown", "holds no signature: "),
    ):
        record = ConsumerRecord("signatures", 2, offset, NOW_MS - 1_000 * age_seconds, b"default/a", value, [])
        found, reason = explain_absence(record, {2: 7}, SCHEME, HOUR)
        assert found is status
        assert re.search(expected, reason)
    assert explain_absence(None, {2: 7}, SCHEME, HOUR)[0] == "unknown"
    old = ConsumerRecord("signatures", 2, 7, 0, b"default/a", signed(), [])
    assert explain_absence(old, {2: 7}, SCHEME, 0)[0] == "unknown"  # what never expires
