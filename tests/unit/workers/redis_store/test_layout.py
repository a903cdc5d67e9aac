"""Where the layout puts states."""

from hypothesis import given
from hypothesis import strategies as st

from nearstream.streams.store.limits import IndexLimits
from nearstream.streams.store.store import Shape
from nearstream.workers.redis_store.layout import GROUP, new_layout


@given(st.integers(1, 2**39), st.integers(1, 300))
def test_a_number_is_found_from_its_group_and_field(number: int, partitions: int) -> None:
    layout = new_layout(b"{test:", Shape(1, partitions), IndexLimits(), b"epoch 01")
    field = layout.field(number)
    assert 0 <= field < GROUP
    assert layout.number(layout.group(number), field) == number
