"""Hashes of the parts of web pages."""

from nearstream.streams.deciding.comparing import lengthened, shortened
from nearstream.streams.estimates.frames import PARTS_MAX, Part, pack_parts
from nearstream.streams.fingerprints.hashing import HashKey

KEY = HashKey.public()


def unpack_parts(packed: bytes) -> list[Part]:
    """Return the parts as decisions read them."""
    return lengthened(shortened(packed))


def test_equal_parts_have_equal_hashes_and_a_number_keeps_the_form() -> None:
    texts = ["Read 12 times", "read 12 times", "Read 9 times", "Read twice", "Id 3f2a9bcd01", "Id 77aa00bb12"]
    first, again, later, other, token, another = unpack_parts(pack_parts([(text, True) for text in texts], KEY))
    assert (first, token) == (again, another)
    assert (first.form, first.words, first.is_main) == (later.form, 3, True)
    assert len({first.exact, later.exact, other.exact}) == 3
    assert first.form != other.form


def test_too_many_parts_and_bytes_that_are_no_parts_give_none() -> None:
    part, link = ("part", False), ("@/a", False)
    assert len(pack_parts([part] * PARTS_MAX, KEY)) == 9 * PARTS_MAX
    assert len(pack_parts([link, *[part] * PARTS_MAX], KEY)) == 9 * PARTS_MAX
    assert pack_parts([part] * (PARTS_MAX + 1), KEY) == b""
    assert pack_parts([part], KEY) != pack_parts([part], HashKey.from_secret(b"another"))
    packed = pack_parts([part, link], KEY)
    assert unpack_parts(packed[:-1]) == unpack_parts(b"x" * 9 * (PARTS_MAX + 1)) == unpack_parts(b"") == []
    assert [each.words for each in unpack_parts(pack_parts([("w " * 900, True), link], KEY))] == [63, 0]
