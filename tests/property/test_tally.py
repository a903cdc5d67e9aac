"""Shared keys are counted as the reference counts them."""

from random import Random

import pytest

from nearstream.streams.matching.protocol import tally
from nearstream.streams.store.buckets import BUCKET, split
from nearstream.streams.store.limits import IndexLimits
from nearstream.streams.store.registration import NUMBER_BYTES
from tests.reference import tally as reference


def made_up(draw: Random) -> list[tuple[bytes, bytes]]:
    """Return keys and what their buckets held: few numbers or many, some of them in many buckets."""
    found = []
    for _ in range(draw.randint(0, 3)):
        keys = [bytes([draw.choice(b"xlbaaaa")]) + draw.randbytes(8) for _ in range(draw.randint(1, 30))]
        reply = b""
        for index in range(len(keys)):
            numbers = draw.sample(range(1, draw.choice([150, 400])), draw.randint(0, draw.choice([0, 3, 12, 110])))
            packed = b"".join(number.to_bytes(NUMBER_BYTES, "big") for number in numbers)
            reply += BUCKET.pack(index, len(numbers)) + packed if numbers else b""
        found.append((b"".join(keys), reply))
    return found


def test_c_counts_as_the_reference_does() -> None:
    draw = Random(1)
    for _ in range(300):
        found, own, anchors = made_up(draw), draw.randint(1, 100), draw.randint(0, 60)
        limits = IndexLimits(bucket_cap=draw.choice([12, 100]))
        expected = reference.shortlist(found, own, anchors, limits)
        counted = tally.shortlist(found, own, anchors, limits)
        assert expected == counted
        assert list(expected.shared) == list(counted.shared)
        number, held = draw.randint(1, 100), {key: numbers for key, numbers in tally.held_by(found) if key[0] in b"ab"}
        keys = tally.keys_that_hold(found, number, b"ab")
        assert split(keys) == tuple(key for key, numbers in held.items() if number in numbers)
        assert (
            dict(tally.held_by(tally.without(found, keys))).items()
            >= {k: n for k, n in held.items() if number not in n}.items()
        )


def test_a_full_digest_bucket_hides_nobody() -> None:
    numbers = b"".join(number.to_bytes(NUMBER_BYTES, "big") for number in range(1, 13))
    found = [(b"x" + bytes(8), BUCKET.pack(0, 12) + numbers)]
    met = tally.shortlist(found, 99, 0, IndexLimits())
    assert met.full_buckets == 0
    assert {shared.in_full_bucket for shared in met.shared.values()} == {False}


@pytest.mark.parametrize(
    "found",
    [
        [(b"a" * 9, b"\0")],
        [(b"a" * 9, BUCKET.pack(0, 2) + bytes(NUMBER_BYTES))],
        [(b"a" * 9, BUCKET.pack(1, 1) + bytes(NUMBER_BYTES))],
        [(b"a" * 9, b"", b"")],
        [("a", b"")],
        ((b"a" * 9, b""),),
    ],
)
def test_c_refuses_what_is_no_answer_of_a_store(found: object) -> None:
    with pytest.raises((TypeError, ValueError)):
        tally.shortlist(found, 1, 1, IndexLimits())  # type: ignore[arg-type]


@pytest.mark.parametrize("anchors", [-(2**63), -1, 2**31, 2**63 - 1])
def test_c_refuses_numbers_whose_products_could_overflow(anchors: int) -> None:
    with pytest.raises(ValueError, match="numbers of 0 to 2147483647 expected"):
        tally.shortlist([], 1, anchors, IndexLimits())


def test_a_bucket_is_crowded_by_two_of_a_family_among_six() -> None:
    def bucket(index: int, *numbers: int) -> bytes:
        return BUCKET.pack(index, len(numbers)) + b"".join(one.to_bytes(NUMBER_BYTES, "big") for one in numbers)

    keys = [bytes([kind]) + bytes([number]) * 8 for number, kind in enumerate(b"bbbax")]
    replies = [bucket(at, 1, 2, 3, 4, 5, 6) for at in (0, 3, 4)]
    found = [
        (b"".join(keys), replies[0] + bucket(1, 1, 2, 3, 4, 5) + bucket(2, 1, 7, 8, 9, 10, 11) + b"".join(replies[1:]))
    ]
    assert tally.crowded_keys(found, [1, 2], b"ab") == keys[0] + keys[3]
    assert tally.crowded_keys(found, [1], b"ab") == b""
