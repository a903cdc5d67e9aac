"""The answer about a document: what labels make of the verdict."""

from dataclasses import replace

import pytest

from nearstream.schemas.checks.check import Labels
from nearstream.schemas.documents.document import Document, from_milliseconds
from nearstream.schemas.documents.signature import Signature
from nearstream.schemas.labels.label import LabelState
from nearstream.streams.fingerprints.hashing import HashKey
from nearstream.streams.matching.checking import answer
from nearstream.streams.matching.family import FamilyFacts
from nearstream.streams.matching.labels import FamilyDetails
from nearstream.streams.matching.looking_up import Found, find, newcomer
from nearstream.streams.matching.matcher import Matcher
from nearstream.streams.relations.thresholds import Thresholds
from nearstream.streams.signing.scheme import preset
from nearstream.streams.signing.signer import Signer
from nearstream.streams.store.store import local_store
from tests.support.matched import look_up

KEY = HashKey.public()
SCHEME = preset("fine", KEY)
TEXT = " ".join(f"word{number} and then" for number in range(60))
BULK_COUNT = 20


def signed(name: str, text: str) -> Signature:
    return Signer(SCHEME, KEY).sign(Document(id=name, text=text, observed_at=from_milliseconds(1_760_000_000_000)))


async def found(text: str) -> Found:
    store = local_store()
    await Matcher(store, SCHEME, KEY).match(signed("a", TEXT))
    asked = newcomer(signed("b", text), SCHEME, KEY, Thresholds())
    return find(asked, await look_up(store, asked))


async def bulk() -> Found:
    """Return a copy of a text that has many."""
    copy = await found(TEXT)
    assert copy.joins is not None
    return replace(copy, families={copy.joins.number: FamilyFacts("ab" * 16, 1, 1, 30, 0, 0, (BULK_COUNT, 25, 29))})


@pytest.mark.parametrize(
    ("spam", "ham", "verdict"),
    [
        (0, 0, "bulk"),
        (1, 0, "known_bad"),
        (0, 1, "known_good"),
        (3, 1, "known_bad"),
        (2, 1, "bulk"),
        (1, 2, "bulk"),
        (4, 12, "known_good"),
        (100, 34, "bulk"),
    ],
)
async def test_labels_decide_if_one_side_is_clearly_ahead(spam: int, ham: int, verdict: str) -> None:
    said = answer(await bulk(), BULK_COUNT, FamilyDetails(Labels(spam=spam, ham=ham)))
    assert (said.verdict, said.labels.spam, said.labels.ham) == (verdict, spam, ham)


@pytest.mark.parametrize(("state", "verdict"), [("", "known_bad"), ("suspended", "bulk"), ("confirmed", "known_bad")])
async def test_suspended_labels_do_not_count(state: LabelState, verdict: str) -> None:
    said = answer(await bulk(), BULK_COUNT, FamilyDetails(Labels(spam=1, ham=0), label_state=state))
    assert (said.verdict, said.label_state, said.labels.spam) == (verdict, state, 1)


@pytest.mark.parametrize("day", [BULK_COUNT - 1, BULK_COUNT])
@pytest.mark.parametrize("form", ["{text} {more}", "{more} {text}", "{more} {text} {more}"])
async def test_a_text_with_many_copies_is_found_between_added_words(form: str, day: int) -> None:
    more = " ".join(f"other{number} thing" for number in range(80))
    held = await found(form.format(text=TEXT, more=more))
    assert held.joins is None
    families = {each.number: FamilyFacts("ab" * 16, 1, 1, 30, 0, 0, (2, day, day)) for each in held.holds}
    said = answer(replace(held, families=families), BULK_COUNT)
    contains = said.contains
    if day < BULK_COUNT:
        assert contains is None
        return
    assert contains is not None
    assert (contains.family, contains.count_1h, contains.count_24h) == ("ab" * 16, 2, BULK_COUNT)
    assert 0.8 * len(TEXT) < contains.characters <= len(TEXT)
    assert said.verdict == "none"


async def test_a_copy_and_a_part_of_a_text_contain_nothing() -> None:
    for text in (TEXT, " ".join(TEXT.split()[:60])):
        assert (await found(text)).holds == ()


async def test_what_is_no_copy_is_known_by_no_label() -> None:
    said = answer(await found(f"{TEXT} {TEXT[::-1]}"), BULK_COUNT, FamilyDetails(Labels(spam=100, ham=0)))
    assert said.verdict == "none"
