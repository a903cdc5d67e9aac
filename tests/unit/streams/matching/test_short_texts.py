"""Which relations texts of 1 to 40 words may have."""

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from random import Random

import pytest

from benchmarks.texts import english
from nearstream.schemas.documents.document import Document
from nearstream.schemas.verdicts.events import PairEvent, Retraction, kind_of
from nearstream.streams.fingerprints.hashing import HashKey
from nearstream.streams.matching.matcher import Matcher
from nearstream.streams.signing.scheme import DEFAULT_LABEL, preset
from nearstream.streams.signing.signer import Signer
from nearstream.streams.store.store import local_store

KEY = HashKey.public()
SCHEME = preset(DEFAULT_LABEL, KEY)
NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
VOCABULARY = [word for word in english(200_000).lower().split() if word.isascii() and word.isalpha()]


def drawn(seed: object, count: int) -> list[str]:
    return Random(f"{seed}").sample(VOCABULARY, count)


def told(*texts: str, lineage: str | None = None) -> list[PairEvent]:
    """Match texts one after the other, and return the events about pairs."""
    return asyncio.run(_told(texts, lineage))


async def _told(texts: Sequence[str], lineage: str | None) -> list[PairEvent]:
    signer, matcher = Signer(SCHEME, KEY), Matcher(local_store(), SCHEME, KEY)
    events: list[PairEvent] = []
    for at, text in enumerate(texts):
        one = Document(id=str(at), text=text, observed_at=NOON + timedelta(minutes=at), lineage=lineage)
        matched = await matcher.match(signer.sign(one))
        events += [event for event in matched.events if not isinstance(event, Retraction)]
    return events


@pytest.mark.parametrize("words", [1, 7, 8, 40])
def test_equal_texts_and_states_of_one_lineage_are_found_at_any_length(words: int) -> None:
    text, another = " ".join(drawn(words, words)), " ".join(drawn(f"another {words}", words))
    (copy,) = told(text, f"«{text.upper()}»")
    assert (kind_of(copy), copy.low_confidence) == ("exact_duplicate", ())
    (state,) = told(text, another, lineage="page")
    assert (kind_of(state), state.rule) == ("version", "same_lineage")
    assert "below_min_length" in state.low_confidence


@pytest.mark.parametrize("words", [2, 5, 7])
def test_below_eight_words_nothing_else_is_related(words: int) -> None:
    for seed in range(10):
        text = drawn(seed, words)
        assert told(" ".join(text), " ".join([*text, *drawn(f"more {seed}", 1)])) == []


def test_from_25_words_on_edits_are_mostly_found_and_said_to_be_of_short_texts() -> None:
    found = [told(" ".join(text), " ".join([*text, "more"])) for text in (drawn(seed, 25) for seed in range(20))]
    assert sum(map(bool, found)) >= 18
    assert all("below_min_length" in event.low_confidence for events in found for event in events)


def test_short_texts_that_have_nothing_in_common_are_never_related() -> None:
    assert told(*(" ".join(drawn(f"lone {seed}", 4 + seed % 37)) for seed in range(200))) == []
