"""Hashes of the parts of web pages."""

from nearstream.streams.estimates.frames import PARTS_MAX, pack_parts, unpack_parts
from nearstream.streams.fingerprints.hashing import HashKey

KEY = HashKey.public()


def test_equal_parts_have_equal_hashes_and_a_number_keeps_the_form() -> None:
    first, again, later, other = unpack_parts(
        pack_parts(["Read 12 times", "Read 12 times", "Read 9 times", "Read twice"], KEY)
    )
    assert first == again
    assert (first.form, first.words) == (later.form, 3)
    assert len({first.exact, later.exact, other.exact}) == 3
    assert first.form != other.form


def test_hashes_depend_on_the_key() -> None:
    assert pack_parts(["a part"], KEY) != pack_parts(["a part"], HashKey.from_secret(b"another"))


def test_a_page_of_too_many_parts_has_no_hashes() -> None:
    assert len(unpack_parts(pack_parts(["part"] * PARTS_MAX, KEY))) == PARTS_MAX
    assert pack_parts(["part"] * (PARTS_MAX + 1), KEY) == b""


def test_bytes_that_are_no_parts_give_none() -> None:
    packed = pack_parts(["one", "two"], KEY)
    assert unpack_parts(packed[:-1]) == unpack_parts(b"x" * 9 * (PARTS_MAX + 1)) == unpack_parts(b"") == []
    assert unpack_parts(pack_parts(["w " * 900], KEY))[0].words == 255
