"""Growth follows which families grow, and where their members come from."""

import random

from msgspec.structs import replace

from nearstream.workers.http.live.families import FAMILIES, MEMBERS, Growth
from tests.support.live import NOW_MS, verdict

ALL: frozenset[str] = frozenset()


def calm(_collection: str, _family: str) -> bool:
    return False


def test_a_family_grows_by_its_copies() -> None:
    growth = Growth(calm)
    growth.add(verdict("first"), NOW_MS)
    assert growth.growing(NOW_MS, 5, "") == ()
    for ordinal in range(2, 6):
        growth.add(verdict(f"copy {ordinal}", "f", ordinal), NOW_MS - (6 - ordinal) * 60_000)
    (family,) = growth.growing(NOW_MS, 5, "")
    assert (family.id, family.founder, family.size, family.joined_10m, family.joined_1h) == ("f", "first", 5, 4, 4)
    assert family.minutes[-5:] == (1, 1, 1, 1, 0)
    assert not family.is_storm
    assert growth.largest(NOW_MS, 5, "news") == (family,)
    assert growth.largest(NOW_MS, 5, "other") == ()


def test_a_family_is_a_storm_while_its_alert_has_not_ended() -> None:
    storms = {("news", "f")}
    growth = Growth(lambda collection, family: (collection, family) in storms)
    for ordinal in (2, 3):
        growth.add(verdict(f"copy {ordinal}", "f", ordinal), NOW_MS)
    later = NOW_MS + 11 * 60_000
    (family,) = growth.largest(later, 1, "")
    assert (family.is_storm, family.joined_10m, family.joined_1h) == (True, 0, 2)
    assert growth.growing(later, 1, "") == ()
    storms.clear()
    assert not growth.largest(later, 1, "")[0].is_storm


def test_members_in_any_order_are_counted_once() -> None:
    growth = Growth(calm)
    ordinals = list(range(2, 500))
    random.Random(7).shuffle(ordinals)
    for ordinal in (*ordinals, *ordinals[:100]):  # as after a repeat, or with other states of members
        one = verdict(f"copy {ordinal}", "f", ordinal)
        growth.add(replace(one, family=replace(one.family, sites=ordinal // 100)), NOW_MS)
    (family,) = growth.growing(NOW_MS, 1, "")
    assert (family.size, family.joined_1h, family.sites) == (499, 498, 4)


def test_a_removed_document_is_named_no_more() -> None:
    growth = Growth(calm)
    for ordinal in (2, 3):
        growth.add(verdict(f"copy {ordinal}", "f", ordinal), NOW_MS)
    growth.remove("other", "copy 2")
    for name in ("copy 2", "first"):
        growth.remove("news", name)
    detail = growth.detail("f", NOW_MS, ALL)
    assert detail is not None
    assert [member.id for member in detail.members] == ["copy 3"]
    assert detail.family.founder is None


def test_families_and_members_are_bounded() -> None:
    growth = Growth(calm)
    for number in range(FAMILIES + 50):
        growth.add(verdict("copy", f"f{number}", 2), NOW_MS)
    for ordinal in range(2, 4 * MEMBERS):
        labels = {"token": str(ordinal)}
        growth.add(verdict(f"copy {ordinal}", "large", ordinal, **labels), NOW_MS)
    assert len(growth._families) == FAMILIES
    assert growth.detail("f0", NOW_MS, ALL) is None
    detail = growth.detail("large", NOW_MS, ALL)
    assert detail is not None
    assert len(detail.members) == MEMBERS
    assert len(detail.marks) <= 64
