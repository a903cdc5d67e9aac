"""Deal tests to the processes of a parallel run, so that those that take long begin first and end together."""

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol, TypeVar

DURATIONS = Path(__file__).parent.parent / "durations.json"
LONG_SECONDS = 4.0  # files that take less are not listed


class Named(Protocol):
    """A test, as far as its duration is known."""

    @property
    def nodeid(self) -> str:
        """Its file and name."""


_Test = TypeVar("_Test", bound=Named)


def known_durations() -> dict[str, float]:
    """Return the seconds that files with long tests took when the list was renewed."""
    durations: dict[str, float] = json.loads(DURATIONS.read_text()) if DURATIONS.exists() else {}
    return durations


def keep_durations(seconds: dict[str, float]) -> None:
    """Write how long the files with long tests took, from the seconds of each test."""
    files: Counter[str] = Counter()
    for name, taken in seconds.items():
        files[_file(name)] += taken
    long = {name: round(taken, 1) for name, taken in sorted(files.items()) if taken >= LONG_SECONDS}
    DURATIONS.write_text(json.dumps(long, indent=0) + "\n")


def dealt(tests: Sequence[_Test], durations: dict[str, float], processes: int) -> list[_Test]:
    """Return tests in an order of which each process gets a part of equal length.

    A part begins with the files that have long tests. All tests of such a file stay together and in their order,
    because they share servers, which would else be started once for its long tests and again for the others. The file
    that takes longest goes to the process that has least to do. The other files follow.

    Args:
        tests: The tests.
        durations: Seconds by file, of the long ones.
        processes: Count of processes.
    """
    files: dict[str, list[_Test]] = {}
    for test in tests:
        files.setdefault(_file(test.nodeid), []).append(test)
    parts: list[list[_Test]] = [[] for _ in range(processes)]
    loads = [0.0] * processes
    most = -(-len(tests) // processes)
    for name in sorted(files.keys() & durations.keys(), key=lambda name: (-durations[name], name)):
        some = files[name]
        free = [at for at in range(processes) if len(parts[at]) + len(some) <= most]
        if not free:
            continue  # they stay among the others
        least = min(free, key=loads.__getitem__)
        parts[least] += some
        loads[least] += durations[name]
    placed = {id(test) for part in parts for test in part}
    rest = iter([test for test in tests if id(test) not in placed])
    for at, part in enumerate(parts):
        size = len(tests) * (at + 1) // processes - len(tests) * at // processes
        part += [test for _, test in zip(range(size - len(part)), rest, strict=False)]
    return [test for part in parts for test in part] + list(rest)


def _file(nodeid: str) -> str:
    return nodeid.partition("::")[0]
