"""Properties of the estimates and verdicts of any two texts."""

from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from nearstream.schemas.documents.evidence import SharedKeys
from nearstream.streams.estimates.comparing import estimate
from nearstream.streams.estimates.estimate import Estimate
from nearstream.streams.estimates.passages import common_text, cover
from nearstream.streams.relations.conditions import conditions, nearest
from nearstream.streams.relations.describe import Related, changed_characters
from nearstream.streams.relations.novelty import Source, novelty
from nearstream.streams.relations.rules import Rule, decide, is_near_threshold
from nearstream.streams.relations.thresholds import DEFAULT_THRESHOLDS, Thresholds, neighbours
from nearstream.streams.relations.verdict import relate
from nearstream.streams.signing.scheme import preset
from nearstream.streams.signing.signer import Signer
from tests.support.made_up import KEY, STANDARD, sign

FINE = Signer(preset("fine", KEY), KEY)
NO_KEYS = SharedKeys(0, 0, 0, 0, 0)

LANGUAGE = Random(7)
VOCABULARY = ["".join(LANGUAGE.choices("etaoinshrdlué東", k=LANGUAGE.randint(1, 9))) for _ in range(2000)]


def written(seed: int, count: int) -> list[str]:
    return Random(seed).choices(VOCABULARY, k=count)


@st.composite
def pairs(draw: st.DrawFn) -> tuple[list[str], list[str]]:
    """Draw two texts made of common and own blocks.

    Blocks may be missing, repeated or moved.
    """
    blocks = [written(seed, draw(st.integers(1, 200))) for seed in range(draw(st.integers(1, 5)))]
    orders = [draw(st.lists(st.sampled_from(range(len(blocks))), min_size=1, max_size=6)) for _ in range(2)]
    one, other = ([word for place in order for word in blocks[place]] for order in orders)
    return one, other


@given(pairs())
@settings(max_examples=150)
def test_a_verdict_does_not_depend_on_argument_order(pair: tuple[list[str], list[str]]) -> None:
    one, other = sign(pair[0], "a"), sign(pair[1], "b")
    numbers = estimate(one, other)
    assert numbers == estimate(other, one)
    here, there = relate(one, other, numbers), relate(other, one, numbers)
    assert (here.relation, here.rule, here.low_confidence) == (there.relation, there.rule, there.low_confidence)
    assert here.inner is None or {here.inner, there.inner} == {"newer", "older"}


@given(pairs())
@settings(max_examples=150)
def test_distance_lies_between_length_difference_and_expected_distance(pair: tuple[list[str], list[str]]) -> None:
    one, other = sign(pair[0], "a"), sign(pair[1], "b")
    numbers = estimate(one, other)
    slack = 1e-6
    assert abs(one.characters - other.characters) <= numbers.low + slack
    assert numbers.low <= numbers.distance + slack
    assert numbers.distance <= numbers.high + slack
    assert one.digest == other.digest or numbers.high <= numbers.expected + slack


@given(pairs())
@settings(max_examples=100)
def test_all_shares_and_places_are_inside_their_text(pair: tuple[list[str], list[str]]) -> None:
    one, other = sign(pair[0], "a"), sign(pair[1], "b")
    numbers = estimate(one, other)
    shares = (
        *(numbers.order_free, numbers.in_order, numbers.order_gap),
        *(numbers.shared, numbers.shared_shorter, numbers.mean_resemblance, numbers.text_in_order),
    )
    assert all(0 <= share <= 1 for share in (*shares, numbers.segment_cover, numbers.segment_share, numbers.spread))
    shorter, longer = (one, other) if one.digest == numbers.shorter_digest else (other, one)
    places = common_text(one, other)
    for passage in (*places.in_order, *([places.segment] if places.segment else [])):
        assert 0 <= passage.shorter[0] < passage.shorter[1] <= shorter.characters
        assert 0 <= passage.longer[0] < passage.longer[1] <= longer.characters
    for share in (numbers.resemblance, numbers.containment_shorter, numbers.containment_longer):
        assert 0 <= share.low <= share.value + 1e-9
        assert share.value <= share.high + 1e-9


@given(pairs(), st.booleans())
@settings(max_examples=200)
def test_what_was_added_and_removed_agrees_with_both_lengths(pair: tuple[list[str], list[str]], grows: bool) -> None:
    newer, older = (sign(words, name, FINE) for words, name in zip(pair if grows else pair[::-1], "ab", strict=True))
    numbers = estimate(newer, older)
    related = Related(newer, older, NO_KEYS, numbers, relate(newer, older, numbers), ())
    added, removed = changed_characters(related) or (0, 0)
    assert added - removed == newer.characters - older.characters
    assert 0 <= added <= newer.characters
    assert 0 <= removed <= older.characters
    assert newer.digest == older.digest or added + removed >= max(1, round(numbers.distance))


@given(pairs(), st.integers(0, 3))
@settings(max_examples=100)
def test_what_is_new_is_at_most_what_one_document_lacks(pair: tuple[list[str], list[str]], seed: int) -> None:
    texts = (pair[0], pair[1], written(seed, 80), [*pair[1][:40], *pair[0][-40:]])
    arriving, *earlier = (sign(text, f"d{at}") for at, text in enumerate(texts))
    covers = cover(arriving, earlier)
    said = novelty(arriving, [Source(one, has, is_common=False) for one, has in zip(earlier, covers, strict=True)])
    assert said.added is not None
    for amount in (said.added, said.novel):
        assert 0 <= amount.low <= amount.value <= amount.high <= arriving.characters
    assert said.novel.value <= said.added.value
    assert sum(end - start for start, end in said.novel_spans) <= said.novel.value + len(said.novel_spans)
    assert all(0 <= start < end <= arriving.characters for start, end in said.novel_spans)
    assert sum(source.characters for source in said.sources) <= arriving.characters - said.novel.value + 5


@given(pairs())
@settings(max_examples=60)
def test_a_record_and_a_whole_signature_give_the_same_verdict(pair: tuple[list[str], list[str]]) -> None:
    one, other = sign(pair[0], "a"), sign(pair[1], "b")
    kept = STANDARD.kept(one), STANDARD.kept(other)
    assert relate(one, other, estimate(one, other)) == relate(*kept, estimate(*kept))


@st.composite
def estimates(draw: st.DrawFn) -> Estimate:
    """Draw numbers near the bounds of the rules, and on them."""
    bounds = [0.0, 0.05, 0.09, 0.25, 0.3, 0.5, 0.6, 0.65, 0.7, 0.75, 0.85, 0.9, 1.0]
    shares = st.one_of(st.sampled_from(bounds), st.floats(0, 1))
    names = [name for name, kind in Estimate.__annotations__.items() if kind is float]
    numbers = {name: draw(shares) for name in names} | {"common_words": draw(st.sampled_from([11.0, 12.0, 40.0]))}
    counts = {
        "rate": 16,
        "common": draw(st.integers(2, 6)),
        "matches": draw(st.integers(2, 6)),
    }
    return estimate(sign(["one"] * 20, "a"), sign(["two"] * 20, "b"))._replace(**numbers, **counts)


@given(estimates())
@settings(max_examples=400)
def test_the_conditions_shown_to_a_person_are_those_that_decide(numbers: Estimate) -> None:
    decided = decide(numbers, DEFAULT_THRESHOLDS)
    assert _shown(numbers, DEFAULT_THRESHOLDS) is decided
    lacking = nearest(numbers, DEFAULT_THRESHOLDS)
    assert (decided.relation == "unrelated") == bool(lacking.failing)
    assert all(each.lacks >= 0 and not each.holds for each in lacking.failing)


@given(estimates())
@settings(max_examples=100)
def test_a_number_is_near_a_threshold_if_a_small_move_of_it_shows_another_relation(numbers: Estimate) -> None:
    decided = decide(numbers, DEFAULT_THRESHOLDS)
    moved = [_shown(numbers, each).relation != decided.relation for each in neighbours(DEFAULT_THRESHOLDS)]
    assert is_near_threshold(numbers, decided, DEFAULT_THRESHOLDS) == any(moved)


def _shown(numbers: Estimate, thresholds: Thresholds) -> Rule:
    return next(each.rule for each in conditions(numbers, thresholds) if each.holds)
