"""Labels in an index, in memory and in Redis: what counts for a family, whatever comes first or twice."""

from dataclasses import replace

from msgspec.structs import replace as replace_fields

from nearstream.schemas.label import LabelKind
from nearstream.streams.index.labels import LABELS_CAP, LabelCounts, Labelling
from nearstream.streams.store.limits import Admission
from nearstream.streams.store.registration import Status
from nearstream.streams.store.store import Position
from nearstream.workers.redis_index.address import IndexAddress
from nearstream.workers.redis_index.index import RedisIndex
from tests.contract.test_families import BRIEF, WORDS, copy_of, joined, only, told
from tests.support.index_documents import NO_KEYS, START_MS, AnyIndex, Make, admission, removal

SPAM = LabelCounts(spam=1)


def labelled(
    name: str, label: LabelKind | None = "spam", weight: int = 1, second: float = 0, offset: int | None = None
) -> Admission:
    """Return the label of a document. The records of labels are in a partition of their own."""
    given = Labelling(label, weight, START_MS + int(1_000 * second))
    position = None if offset is None else Position(1, offset)
    return Admission(f"default/{name}", None, NO_KEYS, position, labelling=given)


async def counts(index: AnyIndex, number: int, delay_seconds: int = 0, second: float = 100) -> LabelCounts:
    return (await index.details(number, 1_000 * delay_seconds, START_MS + int(1_000 * second))).labels


async def campaign(index: AnyIndex, copies: int = 2) -> list[int]:
    """Admit a document and copies of it, which join its family, and return their numbers."""
    first = await only(index, copy_of(WORDS, "a", 0))
    return [first.number, *[(await joined(index, copy_of(WORDS, f"c{at}")))[0].number for at in range(copies)]]


async def test_a_label_counts_for_all_of_the_family_of_its_document(index: AnyIndex) -> None:
    numbers = await campaign(index)
    other = (await only(index, admission("other", anchors=range(50, 70)))).number
    assert (await only(index, labelled("c1"), 1)).status is Status.LABELLED
    await only(index, labelled("a", "ham", 7), 1)
    assert {await counts(index, number) for number in numbers} == {LabelCounts(spam=1, ham=7)}
    assert await counts(index, other) == LabelCounts()


async def test_a_document_counts_once_with_its_newest_label(index: AnyIndex) -> None:
    numbers = await campaign(index)
    for offset, (label, weight) in enumerate([("spam", 1), ("spam", 1), ("spam", 3), ("ham", 2)]):
        await only(index, labelled("c0", "spam" if label == "spam" else "ham", weight, offset=offset), 1)
    assert await counts(index, numbers[0]) == LabelCounts(ham=2)
    await only(index, labelled("c0", None, offset=4), 1)
    assert await counts(index, numbers[0]) == LabelCounts()


async def test_a_label_that_is_delivered_again_changes_nothing(index: AnyIndex) -> None:
    numbers = await campaign(index)
    records = [labelled("c0", offset=0), labelled("c1", offset=1), labelled("c0", None, offset=2)]
    for one in records:
        await only(index, one, 1)
    for one in (*records[:2], records[0]):  # the last ones were not delivered again yet
        assert (await only(index, one, 2)).status is Status.LABELLED
        assert await counts(index, numbers[0]) == SPAM


async def test_a_label_waits_for_its_document(index: AnyIndex) -> None:
    await only(index, labelled("a"))
    await only(index, labelled("c1", "ham"))
    numbers = await campaign(index)
    assert await counts(index, numbers[1]) == LabelCounts(spam=1, ham=1)


async def test_a_label_counts_when_it_is_old_enough_and_giving_it_again_makes_it_no_younger(index: AnyIndex) -> None:
    numbers = await campaign(index)
    await only(index, labelled("a", second=10, offset=0), 10)
    assert await counts(index, numbers[1], 60, 69) == LabelCounts()
    await only(index, labelled("a", second=90, offset=1), 90)
    assert await counts(index, numbers[1], 60, 95) == SPAM


async def test_a_label_from_a_clock_that_is_ahead_counts_from_its_arrival_on(index: AnyIndex) -> None:
    numbers = await campaign(index)
    await only(index, labelled("a", second=9_000), 10)
    assert await counts(index, numbers[1], 5, 20) == SPAM


async def test_a_removed_document_does_not_count_and_counts_again_when_it_comes_back(index: AnyIndex) -> None:
    numbers = await campaign(index)
    await only(index, labelled("c0"))
    await only(index, removal("c0"), 1)
    assert await counts(index, numbers[0]) == LabelCounts()
    await joined(index, copy_of(WORDS, "c0"), 2)
    assert await counts(index, numbers[0]) == SPAM


async def test_the_family_of_a_removed_founder_keeps_its_other_labels(index: AnyIndex) -> None:
    numbers = await campaign(index)
    await only(index, labelled("a"))
    await only(index, labelled("c0"))
    await only(index, removal("a"), 1)
    assert await counts(index, numbers[2]) == SPAM
    assert await counts(index, (await joined(index, copy_of(WORDS, "late"), 2))[0].number) == SPAM


async def test_another_text_of_a_document_takes_its_label_to_another_family(index: AnyIndex) -> None:
    numbers = await campaign(index)
    await only(index, labelled("c0"))
    changed = admission("c0", anchors=range(50, 70), at=1)
    answer = await only(index, changed, 1)
    await told(index, changed, answer, second=1)
    assert await counts(index, numbers[0]) == LabelCounts()
    assert await counts(index, answer.number) == SPAM


async def test_a_label_that_came_before_its_family_was_decided_is_found_in_the_family_it_joins(index: AnyIndex) -> None:
    first = await only(index, copy_of(WORDS, "a", 0))
    copy = copy_of(WORDS, "c0")
    answer = await only(index, copy)
    await only(index, labelled("c0"))
    await index.enter([(answer.number, copy)])
    await told(index, copy, answer)  # it was no copy, so it founds a family
    assert await counts(index, first.number) == LabelCounts()
    assert await counts(index, answer.number) == SPAM


async def test_a_state_that_is_decided_after_its_successor_takes_no_label_away(index: AnyIndex) -> None:
    numbers = await campaign(index)
    first, second = copy_of(WORDS, "c9"), replace(copy_of(WORDS, "c9 again", at=1), document_key="default/c9")
    await only(index, labelled("c9"))
    waiting, later = await only(index, first, 1), await only(index, second, 1)
    for one, answer in ((second, later), (first, waiting)):
        head = next(each for each in answer.candidates if each.number == numbers[0])
        await told(index, one, answer, head, second=1)
        assert await counts(index, numbers[0]) == SPAM


async def test_no_more_than_a_bound_of_documents_count(index: AnyIndex) -> None:
    numbers = await campaign(index, LABELS_CAP + 3)
    for at in range(LABELS_CAP + 3):
        await only(index, labelled(f"c{at}"))
    assert await counts(index, numbers[0]) == LabelCounts(spam=LABELS_CAP)
    for at in range(10):
        await only(index, labelled(f"c{at}", None))
    await only(index, labelled(f"c{LABELS_CAP}"))
    # Which others take the places that have become free is left to the index.
    assert LABELS_CAP - 9 <= (await counts(index, numbers[0])).spam <= LABELS_CAP - 7


async def test_a_label_counts_as_long_as_its_document_is_live(make: Make) -> None:
    index = await make(BRIEF)
    first = await only(index, copy_of(WORDS, "a", 0))
    await only(index, labelled("a"))
    assert await counts(index, first.number, 0, 250) == SPAM
    assert await counts(index, first.number, 0, 300) == LabelCounts()
    renewed = await only(index, copy_of(WORDS, "a", 0), 200)
    assert await counts(index, renewed.number, 0, 400) == SPAM
    assert await counts(index, renewed.number, 0, 500) == LabelCounts()


async def test_an_index_that_never_forgets_keeps_labels(make: Make) -> None:
    index = await make(replace(BRIEF, retention_seconds=0))
    first = await only(index, copy_of(WORDS, "a", 0))
    await only(index, labelled("a"))
    assert await counts(index, first.number, 0, 10**9) == SPAM


async def test_the_labels_of_a_collection_are_in_its_shard(address: IndexAddress) -> None:
    index = await RedisIndex.open(replace(address, shards=3), may_create=True)
    numbers = {}
    for collection in ("default", "news", "mail", "pages"):
        one = admission("a", anchors=[f"{collection} {word}" for word in WORDS])
        assert one.signature is not None
        moved = replace_fields(one.signature, collection=collection)
        numbers[collection] = (await only(index, replace(one, document_key=f"{collection}/a", signature=moved))).number
    for offset, collection in enumerate(("news", "pages")):
        await only(index, replace(labelled("a", offset=offset), document_key=f"{collection}/a"))
    found = {collection: await counts(index, number) for collection, number in numbers.items()}
    near = await index.neighbours(admission("q", anchors=["news 1"]).keys, 9, START_MS)
    await index.close()
    assert found == {"default": LabelCounts(), "news": SPAM, "mail": LabelCounts(), "pages": SPAM}
    assert near.may_have_details


async def test_a_look_up_says_whether_there_is_any_label(redis_index: RedisIndex) -> None:
    await only(redis_index, admission("a", anchors=WORDS))
    keys = admission("q", anchors=WORDS).keys
    assert not (await redis_index.neighbours(keys, 9, START_MS)).may_have_details
    await only(redis_index, labelled("x"))
    assert (await redis_index.neighbours(keys, 9, START_MS)).may_have_details
