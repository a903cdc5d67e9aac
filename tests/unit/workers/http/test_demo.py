"""The made-up day is equal in each run, and goes forward."""

from itertools import islice

import pytest

from nearstream.schemas.documents.document import Document
from nearstream.schemas.topics.codec import decode_document
from nearstream.workers.cli.demo import EXAMPLES
from nearstream.workers.http import demo
from nearstream.workers.http.demo import BEGIN_MS, HOUR_MS, day

LINES = (EXAMPLES / "documents.jsonl").read_bytes().splitlines()


@pytest.fixture
def examples(monkeypatch: pytest.MonkeyPatch) -> list[Document]:
    """Return the examples, and let fewer pages, mails and copies come beside them."""
    for name, number in (("_PAGES", 60), ("_MAILS", 20), ("_CAMPAIGN", 250), ("_STORY", 40)):
        monkeypatch.setattr(demo, name, number)
    return [decode_document(line) for line in LINES]


def test_each_run_is_equal_and_goes_forward(examples: list[Document]) -> None:
    records = list(islice(day(examples), 1_000))
    assert list(islice(day(examples), 1_000)) == records
    times = [each.timestamp_ms for each in records]
    assert times == sorted(times)
    assert times[-1] > BEGIN_MS + HOUR_MS
