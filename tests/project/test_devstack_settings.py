"""The decisions of the local stack before it starts a server."""

import pytest

from tests.devstack.server import StackUnavailableError, free_ports
from tests.devstack.stack import started_stack


@pytest.mark.parametrize("processes", [1, 5])
def test_processes_of_a_parallel_run_have_ports_of_their_own(processes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTEST_XDIST_WORKER_COUNT", str(processes))
    parts = []
    for number in range(processes + 1):
        monkeypatch.setenv("PYTEST_XDIST_WORKER", f"gw{number}")
        parts.append(set(free_ports(300)))
    *parts, replacement = parts  # xdist numbers on where it replaces a process that has crashed
    assert len(set().union(*parts)) == 300 * processes
    assert all(replacement.isdisjoint(part) for part in parts[1:])


def test_an_address_where_nothing_listens_is_refused_by_the_name_of_its_variable(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("NEARSTREAM_REDIS", f"redis://127.0.0.1:{free_ports(1)[0]}/0")
    with pytest.raises(StackUnavailableError, match="NEARSTREAM_REDIS"), started_stack(kafka=False):
        pass
