"""Hashes of the parts of web pages."""

from collections.abc import Sequence

import pytest

from nearstream.streams.estimates.frames import (
    FORMS_MAX,
    PARTS_MAX,
    Frame,
    Part,
    Seen,
    has_stayed,
    is_of_frame,
    learn,
    pack_parts,
    unpack_parts,
)
from nearstream.streams.fingerprints.hashing import HashKey

KEY = HashKey.public()


def test_equal_parts_have_equal_hashes_and_a_number_keeps_the_form() -> None:
    first, again, later, other = page("Read 12 times", "READ 12 times", "Read 9 times", "Read twice")
    assert first == again
    assert (first.form, first.words) == (later.form, 3)
    assert len({first.exact, later.exact, other.exact}) == 3
    assert first.form != other.form


def test_ids_of_builds_say_nothing_and_addresses_have_no_words() -> None:
    shown = [("Build 3f2a91bc of defaced", True), ("Build 0c77de10 of defaced", False), ("@/img/3f2a91bc.png", True)]
    one, other, image = unpack_parts(pack_parts(shown, KEY))
    assert (one, other.is_main, image.words, image.is_main) == (other._replace(is_main=True), False, 0, True)
    assert page("Build 1")[0].exact != page("Build 2")[0].exact


def test_too_many_parts_leave_addresses_out_and_then_give_none() -> None:
    shown = [("part", True), ("@/x", False)] * PARTS_MAX
    assert unpack_parts(pack_parts(shown, KEY)) == unpack_parts(pack_parts(shown[::2], KEY))
    assert len(unpack_parts(pack_parts(shown, KEY))) == PARTS_MAX
    assert pack_parts([("part", True)] * (PARTS_MAX + 1), KEY) == b""


def test_bytes_that_are_no_parts_give_none() -> None:
    packed = pack_parts([("one", True), ("two", False)], KEY)
    assert packed != pack_parts([("one", True), ("two", False)], HashKey.from_secret(b"another"))
    assert unpack_parts(packed[:-1]) == unpack_parts(b"x" * 9 * (PARTS_MAX + 1)) == unpack_parts(b"") == []
    assert page("w " * 900)[0].words == 127


ARTICLE = "A paragraph of the article that is read for its own sake, with all that it has to say about its matter."


def page(*texts: str) -> Sequence[Part]:
    return unpack_parts(pack_parts([(text, True) for text in texts], KEY))


def teasers(number: int, fetch: int) -> tuple[str, ...]:
    """Return what a page shows beside its article, which differs between two fetches."""
    return tuple(f"Teaser {'abcdef'[(number + fetch + place) % 6]}" for place in range(2))


def learned(pages: int = 8) -> Frame:
    """Return the frame of a host whose pages show teasers, a counter and whether something is sold."""
    frame: Frame = {}
    for number in range(pages):
        older, newer = (
            page(ARTICLE, f"Page {'abcdefghij'[number]}", "In stock", f"Read {10 * number + fetch} times", *shown)
            for fetch, shown in enumerate((teasers(number, 0), teasers(number, 2)))
        )
        frame = learn(frame, number, older, newer)
    return frame


def test_what_comes_and_goes_on_several_pages_is_frame() -> None:
    frame = learned()
    shown = page("Read 7777 times", "Teaser a", "Teaser f")
    assert all(is_of_frame(frame, part) for part in shown)
    assert not any(is_of_frame(frame, part) for part in page(ARTICLE, "In stock", "Teaser z"))
    assert not any(is_of_frame(learned(3), part) for part in shown)


def test_a_page_has_stayed_if_only_its_frame_has_changed() -> None:
    frame = learned()
    assert has_stayed(frame, page(ARTICLE, "Read 1 times", "Teaser a"), page("Teaser c", ARTICLE, "Read 2 times"))
    assert has_stayed({}, page(ARTICLE), page(ARTICLE))


@pytest.mark.parametrize(
    "newer",
    [
        (ARTICLE.replace("its", "the"), "In stock", "Teaser a"),
        (ARTICLE, "Sold out", "Teaser a"),
        ("In stock", ARTICLE, "Teaser a"),
        (ARTICLE, "In stock", "In stock", "Teaser a"),
        (ARTICLE, "Teaser a"),
        (ARTICLE, "In stock", "A teaser that was never seen"),
        (),
    ],
    ids=["edited", "sold", "in another order", "repeated", "left out", "something new", "empty"],
)
def test_any_other_change_is_a_change(newer: tuple[str, ...]) -> None:
    assert not has_stayed(learned(), page(ARTICLE, "In stock", "Teaser a"), page(*newer))


def test_what_mostly_stays_is_no_frame_though_many_pages_have_it() -> None:
    frame: Frame = {}
    for number in range(100):
        newer = "Sold out" if number % 5 == 0 else "In stock"
        frame = learn(frame, number, page(ARTICLE, "In stock", "Price 9"), page(ARTICLE, newer, f"Price {newer}"))
    assert not has_stayed(frame, page(ARTICLE, "In stock"), page(ARTICLE, "Sold out"))


def test_a_page_that_is_mostly_frame_is_judged_by_its_whole_text() -> None:
    frame = learned()
    older, newer = ("Teaser a", "Teaser b", "Teaser c"), ("Teaser d", "Teaser e", "Teaser f")
    assert not has_stayed(frame, page("Our news", *older), page("Our news", *newer))


def test_what_is_known_of_a_host_is_bounded_and_keeps_what_is_known_best() -> None:
    frame = learned()
    known = [form for form, seen in frame.items() if len(seen.pages) == 4]
    for number in range(FORMS_MAX):
        frame = learn(frame, number, page("y" * number), page("z" * (number + 1)))
    assert len(frame) == FORMS_MAX
    assert frame.keys() >= set(known)
    for _ in range(500):
        frame = learn(frame, 1, page("x"), page("y"))
    assert max(seen.changed for seen in frame.values()) <= 200


def test_what_comes_and_goes_no_more_stops_being_frame() -> None:
    frame = learned()
    (part,) = page("Teaser a")
    assert is_of_frame(frame, part)
    for number in range(20):
        frame = learn(frame, number, [part], [part])
    assert not is_of_frame(frame, part)
    assert frame[part.form] == Seen(frame[part.form].changed, 20, frame[part.form].pages)
