"""Records that cannot be read, each with its id in the list of bad input.

The last field of each is the reason of its dead letter.
"""

import gzip
import json

from nearstream.schemas.documents.record import Headers

GZIP: Headers = [("content-encoding", b"gzip")]
_LARGE = json.dumps({"text": "large " * 200_000}).encode()

BadRecord = tuple[str, bytes | None, Headers, str]

BAD: list[BadRecord] = [
    ("b01", b"\x00\x01\x02not json", [], "not_json"),
    ("b02", b'{"id": "b02", "text": "tru', [], "not_json"),
    ("b03", b'{"text": "a"} tail', [], "not_json"),
    ("b06", b"", [], "empty_value"),
    ("b07", b"   \n", [], "not_json"),
    ("b08", b'[{"text": "in a list"}]', [], "invalid_message"),
    ("b10", b'{"id": "b10"}', [], "no_content"),
    ("b11", b'{"text": null}', [], "no_content"),
    ("b12", b'{"text": 5}', [], "invalid_message"),
    ("b13", b'{"text": "a", "html": "b"}', [], "several_contents"),
    ("b14", b'{"text": "a", "deep": ' + b"[" * 10_000 + b"]" * 10_000 + b"}", [], "not_json"),
    ("b17", b'{"text": "\\ud800"}', [], "not_json"),
    ("b19", b'{"text": "\xff\xfe"}', [], "not_json"),
    ("b24", b'{"id": "", "text": "a"}', [], "invalid_id"),
    ("b27", b'{"collection": "No Such", "text": "a"}', [], "invalid_message"),
    ("b29", b'{"observed_at": "2026-03-02T08:15:00", "text": "a"}', [], "invalid_time"),
    ("b30", b'{"observed_at": "9999-01-01T00:00:00Z", "text": "a"}', [], "invalid_time"),
    ("b39", _LARGE, [], "too_large"),
    ("b41", gzip.compress(b"0" * 10_000_000), GZIP, "decompression_limit"),
    ("b42", b"\x1f\x8bnot gzip", GZIP, "extraction_failed"),
    ("b43", b"%PDF-1.7", [("content-type", b"application/pdf")], "unsupported_content_type"),
    ("b46", b'{"raw": "??", "content_type": "text/plain"}', [], "invalid_message"),
]
