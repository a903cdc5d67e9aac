"""Fixtures of the fault tests, and the table of their results at the end."""

import json
import os
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from tests.fault.corpus import Sent, corpus
from tests.fault.report import HEADER, Report
from tests.fault.runner import Run, run

Stage = Callable[..., AbstractAsyncContextManager[Run]]

_RESULTS = Path(__file__).parents[2] / "build" / "faults.json"
_FAULT = "fault"


@pytest.fixture(scope="session")
def seed() -> int:
    return int(os.environ.get("SEED", "7"))


@pytest.fixture(scope="session")
def documents(seed: int) -> list[Sent]:
    """Return the documents that every run uses."""
    return corpus(int(os.environ.get("DOCUMENTS", "280")), seed)


@pytest.fixture
def stage(kafka: str, tmp_path: Path, documents: list[Sent], request: pytest.FixtureRequest) -> Stage:
    """Return a function that starts a run with three workers.

    They have processed the first 30 % of the documents.
    """

    @asynccontextmanager
    async def staged(
        fault: str, broker: str = kafka, workers: int = 3, most: int | None = None, **settings: str
    ) -> AsyncIterator[Run]:
        async with run(fault, broker, tmp_path, documents[:most], **settings) as fault_run:
            try:
                for _ in range(workers):
                    fault_run.start()
                if workers:
                    await fault_run.warm_up()
                yield fault_run
            finally:  # this property reaches the terminal summary even if the test runs in another process
                request.node.user_properties.append((_FAULT, asdict(fault_run.report)))
        assert (fault_run.alive, fault_run.redis.pid) == ([], None)

    return staged


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print one line per run and write the outcomes of all fault tests to build/faults.json."""
    told = (each for stats in terminalreporter.stats.values() for each in stats if isinstance(each, pytest.TestReport))
    ours = [each for each in told if each.nodeid.startswith("tests/fault/") and (each.when == "call" or each.skipped)]
    results = [_result(each) for each in ours]
    reports = [Report(**each["report"]) for each in results if each["report"]]
    if reports:
        terminalreporter.section("faults")
        for line in (HEADER, *(each.line for each in reports)):
            terminalreporter.line(line)
        _RESULTS.parent.mkdir(exist_ok=True)
        _RESULTS.write_text(json.dumps(results, indent=1) + "\n")


def _result(test: pytest.TestReport) -> dict[str, Any]:
    """Return the outcome of a test.

    `report` is None if the test had no run.
    """
    why = f" ({test.longrepr[2]})" if isinstance(test.longrepr, tuple) else ""
    report = next((value for name, value in test.user_properties if name == _FAULT), None)
    return {"test": test.nodeid.rpartition("::")[2], "outcome": test.outcome + why, "report": report}
