"""Signatures of texts with 1 to 40 words, and how reliably their relations are found."""

from datetime import UTC, datetime, timedelta
from random import Random

import pytest

from benchmarks.texts import english
from nearstream.schemas.documents.document import Document
from nearstream.schemas.documents.signature import Signature
from nearstream.schemas.verdicts.events import Event, kind_of
from nearstream.streams.matching.matcher import Matcher
from nearstream.streams.signing.scheme import preset
from nearstream.streams.store.local import local_store
from tests.support.implementations import PUBLIC, each_implementation, signer_of

STANDARD = preset("standard", PUBLIC)
NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
LETTERS = 12
WORDS = [word for word in english(200_000).lower().split() if word.isascii() and word.isalpha()]
HAN = [chr(code) for code in range(0x4E00, 0x5E00)]
BANDS = STANDARD.bands.bands

# Number of words, then distinct shingles, band keys, and the fewest and most anchors.
GIVEN = [
    *[(words, 1, 0, 0, 0) for words in range(1, 6)],
    *[(words, words - 4, 0, 0, 0) for words in (6, 7)],
    *[(words, words - 4, BANDS, 1, 1) for words in range(8, 40)],
    (40, 36, BANDS, 1, 2),
]
# Number of characters of three bytes, then distinct shingles of 4, band keys, and anchors (windows of 14 characters).
GIVEN_SPACELESS = [
    *[(characters, 1, 0, 0) for characters in range(1, 5)],
    *[(characters, characters - 3, 0, 0) for characters in range(5, 14)],
    *[(characters, characters - 3, BANDS, 1) for characters in range(14, 41)],
]

NOTHING = frozenset[str]()
SAME = frozenset({"exact_duplicate"})
STATES = frozenset({"version"})
CHANGED = frozenset({"near_duplicate", "version", "overlap"})
INSIDE = frozenset({"containment", "overlap"})
MAYBE = frozenset({""})
# Per change of a text: the relations that may be reported for fewer than 8 words, for 8 to 29, and for 30 to 40.
TOLD = {
    "the same": (SAME, SAME, SAME),
    "other punctuation": (SAME, SAME, SAME),
    "a new state of the document": (STATES, STATES, STATES),
    "same lineage, nothing in common": (STATES, STATES, STATES),
    "a word changed": (NOTHING, CHANGED | {"containment"} | MAYBE, CHANGED | {"containment"}),
    "a word more": (NOTHING, CHANGED | {"containment"} | MAYBE, CHANGED | {"containment"}),
    "as many words more": (NOTHING, INSIDE | CHANGED | MAYBE, INSIDE | CHANGED),
    "between 100 and 100 words": (NOTHING, INSIDE | MAYBE, INSIDE | MAYBE),  # an anchor is certain from 39 words on
    "another text": (NOTHING, NOTHING, NOTHING),
}


def some_words(seed: object, count: int) -> list[str]:
    return Random(f"{seed}").sample(WORDS, count)


def distinct_words(count: int) -> list[str]:
    random = Random(count)
    return ["".join(random.choices("abcdefghijklmnopqrstuvwxyz", k=LETTERS)) for _ in range(count)]


def document(name: str, words: list[str], minute: int = 0, lineage: str | None = None) -> Document:
    return Document(id=name, text=" ".join(words), observed_at=NOON + timedelta(minutes=minute), lineage=lineage)


def signed(text: str, implementation: str) -> Signature:
    return signer_of(implementation).sign(Document(id="x", text=text, observed_at=NOON))


def second(change: str, words: list[str]) -> Document:
    """Return the other document, made from the words of the first."""
    count, more = len(words), some_words(f"more {words}", len(words) + 200)
    changes: dict[str, list[str]] = {
        "the same": words,
        "other punctuation": [f"«{word.upper()}»," for word in words],
        "a new state of the document": more[:count],
        "same lineage, nothing in common": more[:count],
        "a word changed": [*words[: count // 2], more[0], *words[count // 2 + 1 :]],
        "a word more": [*words, more[0]],
        "as many words more": [*words, *more[:count]],
        "between 100 and 100 words": [*more[:100], *words, *more[100:200]],
        "another text": more[:count],
    }
    name = "first" if change == "a new state of the document" else "second"
    return document(name, changes[change], 1, "page" if change.startswith("same lineage") else None)


async def events(change: str, words: list[str], implementation: str = "numpy") -> list[Event]:
    signer = signer_of(implementation)
    matcher = Matcher(local_store(), STANDARD, PUBLIC)
    lineage = "page" if change.startswith("same lineage") else None
    assert (await matcher.match(signer.sign(document("first", words, lineage=lineage)))).events == ()
    return list((await matcher.match(signer.sign(second(change, words)))).events)


def stage(words: int) -> int:
    return (words >= 8) + (words >= 30)


@each_implementation
@pytest.mark.parametrize(("words", "shingles", "bands", "fewest", "most"), GIVEN)
def test_a_text_of_few_words_is_given_this(
    words: int, shingles: int, bands: int, fewest: int, most: int, implementation: str
) -> None:
    signature = signed(" ".join(distinct_words(words)), implementation)
    keys = STANDARD.keys(signature, PUBLIC)
    assert (signature.words, signature.shingles, signature.spaceless) == (words, shingles, False)
    assert (len(keys.digest), len(signature.digest), len(signature.sketch)) == (8, 16, 512)
    assert set(signature.sketch) != {0xFF}
    assert len(keys.bands) == bands
    assert fewest <= len(keys.anchors) <= most
    assert len(signature.ld) // 4 <= max(0, signature.n_bytes - 15)


@each_implementation
@pytest.mark.parametrize(("characters", "shingles", "bands", "anchors"), GIVEN_SPACELESS)
def test_a_spaceless_text_of_few_characters_is_given_this(
    characters: int, shingles: int, bands: int, anchors: int, implementation: str
) -> None:
    signature = signed("".join(Random(characters).sample(HAN, characters)), implementation)
    keys = STANDARD.keys(signature, PUBLIC)
    assert (signature.words, signature.spaceless) == (-(-3 * characters // 64), True)
    assert signature.shingles == shingles
    assert (len(keys.bands), len(keys.anchors)) == (bands, anchors)


@each_implementation
def test_below_16_bytes_there_is_no_symbol_and_at_16_there_is_one_at_most(implementation: str) -> None:
    counts = {size: set[int]() for size in (1, 15, 16, 17)}
    for seed in range(200):
        letters = "".join(Random(seed).choices("abcdefghij", k=17))
        for size, seen in counts.items():
            seen.add(len(signed(letters[:size], implementation).ld) // 4)
    assert counts == {1: {0}, 15: {0}, 16: {0, 1}, 17: {0, 1, 2}}


@each_implementation
def test_a_word_said_again_and_again_is_one_shingle(implementation: str) -> None:
    for words in (5, 8, 40):
        signature = signed("echo " * words, implementation)
        assert (signature.words, signature.shingles) == (words, 1)
        assert len(signature.anchors) // 8 == (words >= 8)


async def test_a_text_without_letters_is_never_matched() -> None:
    with pytest.raises(ValueError, match="empty"):
        await events("the same", ["…", "!"])


@pytest.mark.parametrize("change", TOLD)
@pytest.mark.parametrize("words", [*range(1, 13), 15, 20, 25, 29, 30, 35, 39, 40])
async def test_of_so_many_words_only_this_can_be_told(change: str, words: int) -> None:
    allowed = TOLD[change][stage(words)]
    for seed in range(3):
        told = [kind_of(event) for event in await events(change, some_words(seed, words))]
        assert len(told) <= 1
        assert {*told, *([] if told else [""])} <= (allowed or MAYBE)


@pytest.mark.parametrize("words", [1, 4, 7, 8, 15, 30, 40])
@pytest.mark.parametrize("change", ["the same", "same lineage, nothing in common"])
async def test_both_implementations_tell_the_same(change: str, words: int) -> None:
    texts = some_words(words, words)
    assert await events(change, texts, "native") == await events(change, texts, "numpy")


@pytest.mark.parametrize("words", [1, 7, 8, 20, 40])
async def test_nothing_is_doubtful_about_equal_texts(words: int) -> None:
    (event,) = await events("the same", some_words(words, words))
    assert (event.low_confidence, event.rule) == ((), "equal_digest")


@pytest.mark.parametrize("words", [1, 4, 5, 7, 8, 20, 40])
async def test_states_of_one_short_thing_are_versions_of_low_confidence(words: int) -> None:
    (event,) = await events("same lineage, nothing in common", some_words(words, words))
    assert event.rule == "same_lineage"
    assert {"below_min_length", "few_symbols"} <= set(event.low_confidence)


async def test_every_relation_of_texts_below_44_words_says_so() -> None:
    for seed in range(20):
        for words in (30, 40, 43):
            for event in await events("a word changed", some_words(seed, words)):
                assert "below_min_length" in event.low_confidence
    for event in await events("a word more", some_words(1, 45)):
        assert "below_min_length" not in event.low_confidence


@pytest.mark.parametrize(
    ("change", "words", "fewest"),
    [("a word more", 25, 0.9), ("a word changed", 40, 0.9), ("between 100 and 100 words", 40, 0.95)],
)
async def test_edits_of_short_texts_are_mostly_told_from_here_on(change: str, words: int, fewest: float) -> None:
    told = [await events(change, some_words(seed, words)) for seed in range(60)]
    assert sum(map(bool, told)) >= fewest * len(told)


async def test_short_texts_that_have_nothing_in_common_are_never_related() -> None:
    matcher = Matcher(local_store(), STANDARD, PUBLIC)
    signer = signer_of("numpy")
    for seed in range(400):
        words = some_words(f"lone {seed}", 1 + seed % 40)
        if seed % 40 > 2:  # very short random texts can be equal
            assert (await matcher.match(signer.sign(document(str(seed), words)))).events == ()
