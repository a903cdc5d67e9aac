"""What is new in a document, where, and whether it may be dropped."""

from collections.abc import Sequence
from random import Random
from statistics import fmean, median

import pytest

from nearstream.schemas.documents.signature import Signature
from nearstream.streams.estimates.passages import cover
from nearstream.streams.relations.novelty import SPANS_MAX, Novelty, Source, novelty, removed_spans
from nearstream.streams.signing.scheme import preset
from nearstream.streams.signing.signer import Signer
from tests.reference.covering import cover as expected_cover
from tests.support.made_up import KEY, sign, words

DENSE = Signer(preset("fine", KEY), KEY)


def signed(text: Sequence[str], name: str = "new") -> Signature:
    return sign(list(text), name, DENSE)


def new_in(text: Sequence[str], *others: Sequence[str], common: int = 0) -> Novelty:
    """Return what is new in a text. The last `common` of the others share only what many documents have."""
    arriving, earlier = signed(text), [signed(other, f"old{at}") for at, other in enumerate(others)]
    covers = cover(arriving, earlier)
    assert covers == [expected_cover(arriving, other) for other in earlier]
    sources = [
        Source(each, covered, at >= len(others) - common)
        for at, (each, covered) in enumerate(zip(earlier, covers, strict=True))
    ]
    return novelty(arriving, sources)


def length(text: Sequence[str]) -> int:
    return len(" ".join(text))


def test_a_document_like_no_other_is_new_all_over() -> None:
    found = new_in(words(1, 300))
    size = length(words(1, 300))
    assert (found.added, found.novel.value, found.novel_spans) == (None, size, ((0, size),))
    assert (found.sources, found.common) == ((), 0)


def test_an_equal_text_brings_nothing() -> None:
    text = words(1, 300)
    found = new_in([word.upper() for word in text], text)
    assert (found.novel.value, found.novel.high, found.novel_spans) == (0, 0, ())
    assert [source.id for source in found.sources] == ["old0"]


def test_the_new_paragraphs_of_a_wire_story_are_named() -> None:
    story, paragraphs = words(1, 700), words(2, 160)
    found = new_in([*story[:400], *paragraphs, *story[400:]], story)
    assert found.novel.value == pytest.approx(length(paragraphs), abs=60)
    assert found.novel.low <= length(paragraphs) <= found.novel.high
    ((start, end),) = found.novel_spans[:1]
    assert start == pytest.approx(length(story[:400]), abs=40)
    assert end == pytest.approx(length([*story[:400], *paragraphs]), abs=40)
    assert found.added is not None
    assert found.added.value == found.novel.value


def test_several_documents_together_have_what_one_alone_has_not() -> None:
    one, two, three = words(1, 400), words(2, 300), words(3, 200)
    found = new_in([*one[:300], *words(9, 100), *two[:200]], one, two, three)
    assert found.added is not None
    assert found.added.value > found.novel.value
    assert found.novel.value == pytest.approx(length(words(9, 100)), abs=60)
    assert [source.id for source in found.sources] == ["old0", "old1"]
    assert found.sources[0].characters == pytest.approx(length(one[:300]), abs=40)


def test_text_that_was_moved_or_repeated_is_not_new() -> None:
    text = words(1, 600)
    assert new_in([*text[400:], *text[:400]], text).novel.value < 0.03 * length(text)
    assert new_in(text * 4, text).novel.value < 0.03 * length(text * 4)


def test_common_text_is_counted_apart() -> None:
    frame, article = words(1, 200), words(2, 300)
    found = new_in([*frame, *article], [*frame, *words(3, 300)], common=1)
    assert found.common == pytest.approx(length(frame), abs=40)
    assert found.novel.value == pytest.approx(length(article), abs=40)


def test_a_new_sentence_is_seen_and_placed() -> None:
    """A sentence of 60 to 120 characters in texts of 1 to 20 KB, put in, or in the place of one of its length."""
    random, places = Random(4), []
    for number in range(120):
        text = words(number, random.choice((160, 300, 900, 3000)))
        sentence = words(1000 + number, random.randint(11, 18))
        at = random.randrange(len(text))
        replaced = len(sentence) if number % 3 == 0 else 0
        whole = [*text[:at], *sentence, *text[at + replaced :]]
        found = new_in(whole if number % 2 else whole[: at + len(sentence)], text)
        assert found.novel.high >= 4
        if number % 2 and found.novel_spans:
            places.append(abs(found.novel_spans[0][0] - length(text[:at])))
    assert median(places) <= 40


@pytest.mark.parametrize("count", [60, 3_000])
def test_only_an_equal_text_is_said_to_bring_nothing_since_a_changed_word_may_leave_no_trace(count: int) -> None:
    text = words(1, count + 60)
    part = new_in(text[20 : 20 + count], text).novel
    assert (part.value <= 16, part.high > 3) == (True, True)
    for at in range(0, count, count // 10):
        changed = [*text[:at], text[at][:-1] + "q", *text[at + 1 :]]
        assert new_in(changed, text).novel.high > 3


def test_the_bands_hold_the_true_number() -> None:
    held = []
    for number in range(60):
        text, added = words(number, 500), words(100 + number, 20 + 2 * number)
        found = new_in([*text[:250], *added, *text[250:]], text).novel
        held.append(found.low <= length(added) + 1 <= found.high)
    assert fmean(held) >= 0.9


def removed(older: Sequence[str], newer: Sequence[str]) -> tuple[tuple[int, int], ...]:
    one, other = signed(older, "old"), signed(newer)
    assert cover(one, [other]) == [expected_cover(one, other)]
    return removed_spans(one, other)


def inside(spans: Sequence[tuple[int, int]], places: Sequence[tuple[int, int]]) -> float:
    """Return how much of some places lies in spans."""
    told = {at for span in spans for at in range(*span)}
    return fmean(at in told for place in places for at in range(*place))


@pytest.mark.parametrize(("at", "count"), [(0, 90), (300, 40), (520, 80)])
def test_a_paragraph_that_vanished_lies_where_text_is_said_to_be_removed(at: int, count: int) -> None:
    text = words(1, 600)
    place = length(text[:at]), length(text[: at + count])
    ((start, end),) = removed(text, [*text[:at], *text[at + count :]])
    assert inside([(start, end)], [place]) >= 0.95
    assert end - start <= place[1] - place[0] + 80


def test_of_an_equal_or_moved_text_nothing_is_removed_and_of_another_all() -> None:
    text = words(1, 600)
    assert removed(text, text) == ()
    assert sum(end - start for start, end in removed(text, [*text[300:], *text[:300]])) <= 0.06 * length(text)
    assert removed(text, words(2, 600)) == ((0, length(text)),)


def test_more_places_than_spans_are_joined_and_none_is_left_out() -> None:
    text, cuts = words(1, 6_000), [60 + 140 * number + 60 * (number % 2) for number in range(42)]
    rest = [word for at, word in enumerate(text) if not any(cut <= at < cut + 12 for cut in cuts)]
    places = [(length(text[:cut]), length(text[: cut + 12])) for cut in cuts]
    for spans in (removed(text, rest), new_in(text, rest).novel_spans):
        assert len(spans) == SPANS_MAX
        assert sorted(spans, key=lambda span: span[0] - span[1]) == list(spans)
        assert inside(spans, places) >= 0.9
