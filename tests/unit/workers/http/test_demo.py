"""The made-up day is equal in each run, goes forward, and has all that the page shows."""

import asyncio
from itertools import islice

import pytest

from nearstream.schemas.documents.document import Document
from nearstream.schemas.topics.codec import decode_document
from nearstream.workers.cli.demo import EXAMPLES
from nearstream.workers.config.settings import load
from nearstream.workers.http import demo
from nearstream.workers.http.demo import BEGIN_MS, HOUR_MS, Replay, day
from nearstream.workers.pipeline.deployment import Deployment

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


async def test_a_replay_matches_the_day_and_stays_in_step(examples: list[Document]) -> None:
    """A fast replay of the first hour finds the storm, the story and the removal, whatever the machine does."""
    replay = Replay(Deployment.of(load({})), examples, 100_000)
    began = replay.now_ms()
    await replay.warm_up()
    assert replay.feed.state("").totals["verdict"] > 50
    running, told = asyncio.create_task(replay.run()), set(replay.feed.alarms.firing("", replay.now_ms()))
    async with asyncio.timeout(400):
        while replay.now_ms() < BEGIN_MS + HOUR_MS and not running.done():
            await asyncio.sleep(0.05)
            told |= set(replay.feed.alarms.firing("", replay.now_ms()))
    running.cancel()
    state = replay.feed.state("")
    largest = {family.collection: family for family in reversed(state.largest)}
    assert largest["mail"].size > 200
    assert largest["web"].size > 30
    assert largest["web"].founder is None
    assert state.totals["retraction"] == 1
    assert sum(state.verdicts["unchanged"]) > 5
    assert state.connected
    assert {alert.name for alert in told} == {"duplicate_storm", "dead_letters"}
    # By the clock of the day, ten minutes after the last records that were refused.
    assert [alert for alert in state.alerts if alert.name == "dead_letters"] == []
    letters = replay.feed.letters.shown(replay.now_ms())
    assert {each.reason for each in letters.reasons} == {"invalid_time", "not_json"}
    assert all(replay.feed.letters.detail(letter.id) for letter in letters.letters)
    assert began == BEGIN_MS + began % HOUR_MS
    assert 0 < len(replay.signatures) <= 10_000
