"""Entries are packed as the reference packs them."""

from random import Random

import pytest

from nearstream.streams.store.messages import Entry
from nearstream.workers.redis.store import calls
from tests.reference import entries as reference
from tests.support.entered import made_up


def test_c_packs_as_the_reference_does() -> None:
    draw, left = Random(1), 0
    for _ in range(60):
        layout, batch = made_up(draw)
        expected = reference.pack_entries(layout, b"{made up:0}", batch)
        assert calls.pack_entries(layout, b"{made up:0}", batch) == expected
        left += len(batch) - len(expected[1])
    assert left, "some batches have too many buckets for one command"


@pytest.mark.parametrize("entry", [(1, 2, b"b1234567"), (2**40, 0, b""), (-1, 0, b""), (0, 0, b"c" + bytes(8)), (1, 2)])
def test_c_refuses_what_is_no_entry(entry: Entry) -> None:
    layout, _ = made_up(Random(1))
    with pytest.raises((ValueError, TypeError, OverflowError)):
        calls.pack_entries(layout, b"", [entry])
