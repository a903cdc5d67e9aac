"""Sites of a family, in memory and in Redis: each counts once, from the member on that was the first of it."""

from msgspec.structs import replace

from nearstream.streams.matching.arriving import Arrival
from nearstream.streams.store.limits import SITES_CAP
from nearstream.streams.store.messages import Join, Leave, Measure, Query
from nearstream.streams.store.store import Store
from tests.support.made_up import words
from tests.support.matched import in_order, matcher, removal, sign, verdict

FOUNDER = 4


def site(number: int) -> bytes:
    return number.to_bytes(8, "big") if number else b""


async def join(store: Store, number: int, own: int, first: int = 1, instead: int = 0) -> int:
    """Let a page of a site join a family, and return the count of its sites."""
    sites, family_id = (site(own), site(first)), b"a family of pages"[:16]
    (joined,) = await store.join([Join(FOUNDER, number, False, True, b"", instead, family_id, 0, b"", b"", 1, *sites)])
    return joined.sites


async def count(store: Store) -> int:
    (growth,) = await store.growth([Measure(FOUNDER, 1)])
    assert growth is not None
    return growth.sites


async def test_a_member_is_told_how_many_sites_there_were_when_it_joined(store: Store) -> None:
    pages = [(5, 1), (6, 2), (7, 0), (8, 2), (9, 3)]
    told = [await join(store, *page) for page in pages]
    assert told == [1, 2, 2, 2, 3]
    assert [await join(store, *page) for page in reversed(pages)] == told[::-1]  # delivered again
    for number, sites in zip((FOUNDER, 5, 6, 7, 8, 9, 10), (1, *told, 0), strict=True):
        (view,) = await store.fetch([Query(FOUNDER, number)])
        assert view is not None
        assert view.family is not None
        assert view.family.sites == sites
    assert await count(store) == 3


async def test_another_state_of_a_member_and_one_that_has_left_change_nothing(store: Store) -> None:
    assert [await join(store, 5, 2), await join(store, 6, 3), await join(store, 7, 9, instead=5)] == [2, 3, 2]
    await store.leave([Leave(FOUNDER, 6)])
    assert (await join(store, 8, 4), await count(store)) == (4, 4)


async def test_only_the_first_who_joins_names_the_site_of_the_founder(store: Store) -> None:
    assert [await join(store, 5, 0, first=0), await join(store, 6, 0, first=1)] == [0, 0]


async def test_a_family_counts_a_bounded_number_of_sites(store: Store) -> None:
    for number in range(1, SITES_CAP + 9):
        sites = await join(store, FOUNDER + number, 1 + number)
        assert sites == min(1 + number, SITES_CAP)
    assert await count(store) == SITES_CAP
    links = bytes((0, 0, 0, 0, 9, 7))
    (joined,) = await store.join([Join(FOUNDER, 999, False, True, links, 0, bytes(16), 0)])
    assert joined.new_links == (True,)


async def test_verdicts_say_on_how_many_sites_a_text_is(store: Store) -> None:
    text, urls = (
        words(1, 60),
        ["https://a.example/1", "https://www.a.example/2", "", "https://a.co.uk/", "https://b.co.uk/"],
    )
    signed = [sign(f"d{number}", text, number, url=url or None) for number, url in enumerate(urls)]
    other = sign("other", words(2, 60), 9, url="https://c.example/")
    arrivals = in_order([Arrival(each.document_key, each) for each in (*signed, other)])
    told = [[1, 1, 1, 2, 3, 1], [1, 1, 1, 2, 3, 1]]
    for expected in told:  # all of it is delivered again
        found = [verdict(each) for each in await matcher(store).match_all(arrivals)]
        assert [each.family.sites for each in found] == expected
    again = [replace(each, raw_digest=b"another spelling") for each in signed]
    repeated = in_order([Arrival(each.document_key, each) for each in (*again, other)], first=len(arrivals))
    found = [verdict(each) for each in await matcher(store).match_all(repeated)]
    assert [(each.verdict, each.family.sites) for each in found] == [("unchanged", sites) for sites in told[0]]


async def test_a_founder_that_was_removed_is_no_site(store: Store) -> None:
    text = words(1, 60)
    first, second, third = (sign(f"d{number}", text, number, url=f"https://{number}.example/") for number in range(3))
    arrivals = [Arrival(first.document_key, first), Arrival(second.document_key, second), removal("d0")]
    await matcher(store).match_all(in_order(arrivals))
    (found,) = await matcher(store).match_all(in_order([Arrival(third.document_key, third)], first=3))
    assert verdict(found).family.sites == 3  # it had carried the text
