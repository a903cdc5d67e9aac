"""Labels in an index, in memory and in Redis: what counts for a family, whatever comes first or twice."""

import time

import pytest

from nearstream.schemas.checks.check import Labels
from nearstream.streams.matching.checking import attached, spread
from nearstream.streams.matching.labels import NO_LABELS, FamilyDetails, details_of
from nearstream.streams.matching.looking_up import find, look_up_all, newcomer, with_attachments
from nearstream.streams.relations.thresholds import Thresholds
from nearstream.streams.store.limits import LABELS_CAP
from nearstream.streams.store.registration import Labelling, Order, Put
from nearstream.streams.store.store import Store
from tests.support.filing import Filing
from tests.support.made_up import KEY, OTHER, STANDARD, TEXT, near, sign, words

SPAM = Labels(spam=1, ham=0)
NOTHING = NO_LABELS


@pytest.fixture
def filing(store: Store) -> Filing:
    return Filing(store)


async def details(store: Store, text: list[str], delay_seconds: int = 0) -> FamilyDetails:
    """Return the details of the family that a text would join, as a check does."""
    asked = newcomer(sign(text, "asked"), STANDARD, KEY, Thresholds())
    (found,) = await look_up_all(store, [asked])
    joins = find(asked, found).joins
    assert joins is not None
    growth = found.families[joins.number].growth
    return await details_of(store, STANDARD.name, growth, 1_000 * delay_seconds) if growth else FamilyDetails()


async def counts(store: Store, text: list[str] = TEXT, delay_seconds: int = 0) -> Labels:
    return (await details(store, text, delay_seconds)).labels


async def campaign(filing: Filing, copies: int = 2) -> None:
    """Match a document and copies of it, which join its family."""
    await filing.put("a")
    for at in range(copies):
        await filing.put(f"c{at}", near(10 + at))


async def test_a_label_counts_for_all_of_the_family_of_its_document(filing: Filing) -> None:
    await campaign(filing)
    await filing.put("other", OTHER)
    await filing.label("c1")
    await filing.label("a", "ham", 7)
    for text in (TEXT, near(10), near(11)):
        assert await counts(filing.store, text) == Labels(spam=1, ham=7)
    assert await counts(filing.store, OTHER) == NOTHING


async def test_a_label_of_a_document_without_copies_counts_and_stays_when_it_gets_some(filing: Filing) -> None:
    await filing.put("a")
    await filing.label("a")
    assert await counts(filing.store) == SPAM
    verdict = (await filing.put("c0", near(10))).verdict
    assert verdict is not None
    assert verdict.family.ordinal == 2
    assert await counts(filing.store, near(10)) == SPAM
    await filing.label("a", None)
    assert await counts(filing.store) == NOTHING


async def test_a_document_counts_once_with_its_newest_label(filing: Filing) -> None:
    await campaign(filing)
    for label, weight in (("spam", 1), ("spam", 1), ("spam", 3), ("ham", 2)):
        await filing.label("c0", "spam" if label == "spam" else "ham", weight)
    assert await counts(filing.store) == Labels(spam=0, ham=2)
    await filing.label("c0", None)
    assert await counts(filing.store) == NOTHING


async def test_a_label_of_a_former_release_counts_until_the_next_one(filing: Filing) -> None:
    await filing.label_of_former_release("a", "ham")
    await campaign(filing)
    assert await counts(filing.store) == Labels(spam=0, ham=1)
    await filing.label("a")
    await filing.label_of_former_release("a", "ham")  # delivered again
    assert await counts(filing.store) == SPAM


async def test_a_label_waits_for_its_document(filing: Filing) -> None:
    await filing.label("a")
    await filing.label("c1", "ham")
    await campaign(filing)
    assert await counts(filing.store) == Labels(spam=1, ham=1)


async def test_a_label_counts_when_it_is_old_enough_and_giving_it_again_makes_it_no_younger(filing: Filing) -> None:
    await campaign(filing)
    await filing.label("a", age_seconds=500)
    assert await counts(filing.store, delay_seconds=600) == NOTHING
    await filing.label("a", age_seconds=1)
    assert await counts(filing.store, delay_seconds=400) == SPAM
    await filing.label("a", "ham", age_seconds=1)
    assert await counts(filing.store, delay_seconds=400) == NOTHING


async def test_a_label_from_a_clock_that_is_ahead_counts_from_its_arrival_on(filing: Filing) -> None:
    await campaign(filing)
    await filing.label("a", age_seconds=-9_000)
    await filing.put("later", OTHER)  # in memory, the time is that of the newest document
    assert await counts(filing.store) == SPAM


async def test_a_removed_document_does_not_count_and_counts_again_when_it_comes_back(filing: Filing) -> None:
    await campaign(filing)
    await filing.label("c0")
    await filing.remove("c0")
    assert await counts(filing.store) == NOTHING
    await filing.put("c0", near(10))
    assert await counts(filing.store) == SPAM


async def test_the_family_of_a_removed_founder_keeps_its_other_labels(filing: Filing) -> None:
    await campaign(filing)
    await filing.label("a")
    await filing.label("c0")
    await filing.remove("a")
    assert await counts(filing.store) == SPAM
    await filing.put("late", near(20))
    assert await counts(filing.store, near(20)) == SPAM


async def test_another_text_of_a_document_takes_its_label_to_another_family(filing: Filing) -> None:
    await campaign(filing)
    await filing.label("c0")
    await filing.put("c0", OTHER)
    assert await counts(filing.store) == NOTHING
    assert await counts(filing.store, OTHER) == SPAM


async def test_a_state_that_comes_late_takes_no_label_away(filing: Filing) -> None:
    await campaign(filing)
    await filing.label("c0")
    earlier = sign(near(30), "c0")  # observed before the current one
    assert (await filing.match(earlier)).registered.is_late
    assert await counts(filing.store) == SPAM


async def test_no_more_than_a_bound_of_documents_count(filing: Filing) -> None:
    await campaign(filing, LABELS_CAP + 3)
    for at in range(LABELS_CAP + 3):
        await filing.label(f"c{at}")
    assert await counts(filing.store) == Labels(spam=LABELS_CAP, ham=0)
    for at in range(10):
        await filing.label(f"c{at}", None)
    # Which others have lost their places is left to the index.
    assert LABELS_CAP - 10 <= (await counts(filing.store)).spam <= LABELS_CAP - 7


async def test_a_record_that_is_delivered_again_changes_no_label(store: Store) -> None:
    number, now_ms = store.number(None), time.time_ns() // 1_000_000
    document, order = b"document.", Order(1, -1, 0, b"version.")
    await store.register([Put(number, document, order, 0, b"record", now_ms)])
    given = [
        Labelling(store.shape.number(0, 10 + at), document, label, now_ms - 9 + at, now_ms + 1_000 * at)
        for at, label in enumerate((b"spam:1", b"spam:1", b"ham:1", b""))
    ]
    (first,), (second,), (third,), (last,) = [await store.register([one]) for one in given]
    assert first.label == second.label == (now_ms - 9).to_bytes(6, "big") + b"spam:1"
    assert third.label == (now_ms - 7).to_bytes(6, "big") + b"ham:1"
    assert last.label == b""
    for one in given:
        assert (await store.register([one]))[0].label == b""


async def test_a_look_up_knows_no_family_of_a_document_that_is_alone_and_has_no_label(filing: Filing) -> None:
    await filing.put("a")
    asked = newcomer(sign(TEXT, "asked"), STANDARD, KEY, Thresholds())
    (found,) = await look_up_all(filing.store, [asked])
    (facts,) = found.families.values()
    assert (facts.growth, facts.size, facts.joined) == (None, 1, (0, 0, 0))
    await filing.label("a")
    (labelled,) = await look_up_all(filing.store, [asked])
    assert labelled.families == found.families
    assert [len(each.growth.marks) for each in labelled.families.values() if each.growth] == [1]


async def test_labels_of_mails_with_equal_attachments_are_found_whatever_their_texts(filing: Filing) -> None:
    for at in range(40):
        fields = {"source": "mail", "labels": {"attachments": "1f", "sender-domain": f"{at % 4}"}}
        await filing.put(f"m{at}", words(100 + at, 60), **fields)
    await filing.put("other", words(99, 60), source="mail", labels={"attachments": "2e"})
    await filing.label("m2")
    for own, count, spam in (("1f", 40, 1), ("2e", 1, 0), ("3d", 0, 0)):
        signature = sign(words(98, 60), "asked", source="mail", labels={"attachments": own, "sender-domain": "9"})
        asked = newcomer(signature, STANDARD, KEY, Thresholds())
        found = find(asked, (await look_up_all(filing.store, [asked]))[0])
        said = attached(found, *await with_attachments(filing.store, asked, 0))
        assert (said and said.count, said and said.labels.spam) == ((count, spam) if count else (None, None))


async def test_a_passage_of_many_domains_within_a_day_is_counted_without_a_copy_of_its_own(filing: Filing) -> None:
    def said(at: int, domains: int) -> dict[str, object]:
        return {"source": "mail", "labels": {"sender-domain": f"{at % domains}"}}

    for domains in (8, 7):  # mails with words of their own around one passage
        for at in range(9):
            own = words(200 + 20 * domains + at, 120)
            await filing.put(f"{domains}-{at}", [*own, *words(domains, 90)], **said(at, domains))
    for domains, count in ((8, 9), (7, None)):
        signature = sign([*words(99, 120), *words(domains, 90)], "asked", source="mail")
        asked, now_ms = newcomer(signature, STANDARD, KEY, Thresholds()), time.time_ns() // 1_000_000
        found = find(asked, (await look_up_all(filing.store, [asked]))[0])
        held = spread(found, now_ms)
        assert (held and held.count_1h, held and held.count_24h) == (count, count)
        assert held is None or 300 < held.characters < 700
        assert spread(found, now_ms + 2 * 86_400_000) is None
