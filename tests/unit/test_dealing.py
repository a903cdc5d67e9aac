"""Long tests are dealt first, and none gets lost."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from tests.support.dealing import dealt


@dataclass(frozen=True)
class Case:
    nodeid: str


def parts(tests: Sequence[Case], processes: int) -> list[list[str]]:
    """Return what each process gets."""
    ends = [len(tests) * at // processes for at in range(processes + 1)]
    return [[test.nodeid for test in tests[start:end]] for start, end in pairwise(ends)]


def test_each_process_begins_with_files_that_take_long() -> None:
    names = [f"{file}::{number}" for file in "abcdef" for number in range(4)]
    durations = {"c": 110.0, "e": 90.0, "f": 20.0, "a": 5.0}
    one, other = parts(dealt([Case(name) for name in names], durations, 2), 2)
    assert one[:8] == [f"{file}::{number}" for file in "ca" for number in range(4)]
    assert other[:8] == [f"{file}::{number}" for file in "ef" for number in range(4)]
    assert sorted(one + other) == sorted(names)


@given(
    st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 40)), unique=True),
    st.dictionaries(st.sampled_from("abcd"), st.floats(2, 100)),
    st.integers(1, 6),
)
def test_every_test_is_dealt_once(names: list[tuple[str, int]], long: dict[str, float], count: int) -> None:
    tests = [Case(f"{file}::{number}") for file, number in names]
    found = dealt(tests, long, count)
    assert sorted(map(repr, found)) == sorted(map(repr, tests))
