"""Where the layout puts states."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st
from redis.crc import key_slot

from nearstream.streams.store.limits import IndexLimits
from nearstream.streams.store.store import Shape
from nearstream.workers.redis.server.layout import GROUP, new_layout, tag_of


@given(st.integers(1, 2**39), st.integers(1, 300))
def test_a_number_is_found_from_its_group_and_field(number: int, partitions: int) -> None:
    layout = new_layout(b"{test:", Shape(1, partitions), IndexLimits(), b"epoch 01")
    field = layout.field(number)
    assert 0 <= field < GROUP
    assert layout.number(layout.group(number), field) == number


def test_slots_are_spread_evenly_over_the_servers_of_a_cluster() -> None:
    for slots, servers in ((2, 2), (4, 2), (4, 4), (16, 4), (24, 3), (64, 16)):
        for name in range(20):
            tags = [tag_of(b"{name %d:" % name, slot) for slot in range(slots)]
            counts = Counter(key_slot(tag[1:-1]) * servers // 16_384 for tag in tags)
            assert max(counts.values()) <= slots // servers + 1
