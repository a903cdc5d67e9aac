"""A document is compared with the collections that it names, and these learn nothing of it."""

import pytest
from msgspec import UNSET

from nearstream.schemas.documents.document import Document
from nearstream.schemas.documents.evidence import ReferenceMatch
from nearstream.streams.matching.telling import Matched
from nearstream.streams.signing.exact import normal_text
from nearstream.streams.signing.signer import Signer
from nearstream.streams.store.store import Store
from tests.support.deployment import TEXTS
from tests.support.made_up import KEY, NOON, STANDARD, words
from tests.support.matched import found, in_order, matcher, put, removal, sign, verdict

TEXT = words(1, 600)
NEAR = [*TEXT[:300], *words(2, 12), *TEXT[300:]]
PASSAGE, OTHER = TEXT[100:300], words(3, 600)
GOOD, BAD = "known-good", "known-bad"


def references(matched: Matched) -> list[ReferenceMatch]:
    """Return the references of a verdict that has some or none, and is not without."""
    named = verdict(matched).references
    assert named is not UNSET
    return list(named)


async def test_a_text_is_found_in_the_collections_that_it_names_and_they_learn_nothing(store: Store) -> None:
    one = matcher(store)
    await one.match_all(
        [put("a", TEXT, collection=GOOD), put("b", NEAR, 1, collection=GOOD), put("c", OTHER, 2, collection=BAD)]
    )
    told, alone = await one.match_all([put("new", TEXT, 3, against=(GOOD, BAD)), put("next", OTHER, 4)])
    assert (verdict(told).verdict, verdict(told).of, told.events) == ("unique", None, ())
    assert verdict(alone).references is UNSET
    (match,) = references(told)
    assert (match.collection, match.id, match.relation, match.inner) == (GOOD, "a", "exact_duplicate", UNSET)
    assert match.characters == verdict(told).characters
    # The next copy there is the third, and no look-up there finds the new document.
    (joined,) = await one.match_all([put("d", TEXT, 5, collection=GOOD)])
    assert (verdict(joined).family.id, verdict(joined).family.ordinal) == (match.family, 3)
    assert "new" not in await found(store, sign("q", TEXT, collection=GOOD))


async def test_of_a_reference_the_text_counts_alone_not_its_id_and_lineage(store: Store) -> None:
    one = matcher(store)
    await one.match_all([put("page", TEXT, lineage="x", collection=GOOD), put("x", OTHER, lineage="y", collection=BAD)])
    (told,) = await one.match_all([put("page", PASSAGE, 1, lineage="y", against=(GOOD, BAD))])
    (match,) = references(told)
    assert (match.collection, match.relation, match.inner) == (GOOD, "containment", "document")
    assert verdict(told).verdict == "unique"


async def test_a_document_that_holds_a_reference_says_how_much_of_it(store: Store) -> None:
    one = matcher(store)
    await one.match(sign("licence", PASSAGE, collection=GOOD))
    (told,) = await one.match_all([put("new", TEXT, 1, against=(GOOD,))])
    (match,) = references(told)
    own = sum(map(len, PASSAGE)) + len(PASSAGE)
    assert (match.relation, match.inner) == ("containment", "reference")
    assert isinstance(match.characters, int)
    assert abs(match.characters - own) < 0.1 * own


@pytest.mark.parametrize("count", [8, 13, 60])
async def test_a_short_item_is_found_where_it_lies_as_it_is(store: Store, count: int) -> None:
    one, signer = matcher(store), Signer(STANDARD, KEY, references=(GOOD,))
    said, about = (normal_text(text, STANDARD).split() for text in TEXTS[:2])
    items = [said[at : at + count] for at in range(50, 1250, 100)]
    for seed, item in enumerate(items):
        await one.match(signer.sign(Document(id=f"{seed}", text=" ".join(item), observed_at=NOON, collection=GOOD)))
    for seed, item in enumerate(items):
        changed = [*item[:4], "other", *item[5:]]
        rest = (
            words(5, 9000) if seed == 7 and count > 13 else about[20 * seed :]
        )  # of so many not all windows are known
        texts = [[*about[: 20 * seed], *own, *rest] for own in (item, changed)]
        asked = [put(f"q{seed}-{at}", text, against=(GOOD,)) for at, text in enumerate(texts)]
        told, without = await one.match_all(asked)
        (match,) = references(told)
        assert (match.id, match.relation, match.inner) == (f"{seed}", "containment", "reference")
        assert isinstance(match.characters, int)
        assert match.characters >= len(" ".join(item))
        assert count > 13 or references(without) == []


@pytest.mark.parametrize("against", [("nobody",), ("default",), (GOOD, GOOD)])
async def test_a_collection_that_is_empty_or_its_own_gives_no_reference(store: Store, against: tuple[str, ...]) -> None:
    one = matcher(store)
    await one.match(sign("a", TEXT))
    (told,) = await one.match_all([put("b", TEXT, 1, against=against)])
    assert (references(told), verdict(told).verdict) == ([], "exact_duplicate")


async def test_a_delivery_again_and_an_unchanged_document_say_what_is_there_now(store: Store) -> None:
    one = matcher(store)
    await one.match_all(in_order([put("a", TEXT, collection=GOOD)]))
    batch, later = (in_order([put("new", TEXT, minute, against=(GOOD,))], minute) for minute in (1, 2))
    (first,), (unchanged,) = await one.match_all(batch), await one.match_all(later)
    assert [each.id for told in (first, unchanged) for each in references(told)] == ["a", "a"]
    assert verdict(unchanged).verdict == "unchanged"
    (again,) = await one.match_all(batch, is_again=True)
    assert verdict(again) == verdict(first)
    await one.match_all(in_order([removal("a", GOOD)], 9))
    (again,) = await one.match_all(batch, is_again=True)
    assert references(again) == []
