"""A broker and a Redis for all tests, each started when the first test needs it."""

import gc
import logging
import os
import shlex
import signal
import sys
import threading
from collections import Counter
from collections.abc import Generator, Iterator
from contextlib import ExitStack, suppress
from importlib import import_module
from pathlib import Path
from typing import TypeVar

import pytest
from hypothesis import settings
from xdist.workermanage import WorkerController

from tests.devstack.kafka import kafka_server
from tests.devstack.server import LocalServer, StackUnavailableError, running
from tests.devstack.stack import started_stack
from tests.support.cluster import redis_cluster

_KAFKA = pytest.StashKey[str]()
_TESTS = Path(__file__).parent

settings.register_profile("busy machine", deadline=None)  # an example may wait for the processor
settings.load_profile("busy machine")

_Report = TypeVar("_Report", pytest.CollectReport, pytest.TestReport)
_OBJECTS = 50_000  # that are made before the garbage collector looks at them
_LISTED = 8  # failed tests that a run names at its end

_CONFIGURED = (
    *("nearstream", "nearstream.workers.pipeline.faust_consumer"),
    *("aiokafka", "faust.agents.actor", "faust.worker", "mode.timers"),
)
_SHARED = ExitStack()  # what the process that controls a parallel run has started for the others


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: WorkerController) -> None:
    """Start one broker for all processes of a parallel run, since each broker takes as much CPU time as many tests.

    If it cannot run here, each test that needs it says so.
    """
    with suppress(StackUnavailableError):
        if _KAFKA not in node.config.stash:
            node.config.stash[_KAFKA] = _SHARED.enter_context(started_stack(redis=False)).kafka
        node.workerinput["kafka"] = node.config.stash[_KAFKA]


def pytest_unconfigure() -> None:
    """Stop what was started for all processes."""
    _SHARED.close()


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Iterator[None]:
    """Let each process of a parallel run of all tests import another part of them first.

    To prepare a file of tests for its assertions takes longer than all else of its import, and the result is kept in a
    file. So each is prepared once, where all processes would do so at the same time. The garbage collector looks at no
    test while they are collected, and at none of them later, because they live as long as their process. What tests
    make it looks at seldom, since at the usual threshold that takes a tenth of the time of those which match documents.
    """
    gc.disable()
    given = getattr(session.config, "workerinput", None)
    if given and session.config.args_source is pytest.Config.ArgsSource.TESTPATHS:
        number, count = int(given["workerid"].removeprefix("gw")), given["workercount"]
        for path in sorted(_TESTS.rglob("test_*.py"))[number::count]:
            with suppress(Exception, pytest.skip.Exception):  # which is told when the tests are collected
                import_module(".".join(path.relative_to(_TESTS.parent).with_suffix("").parts))
    try:
        return (yield)
    finally:
        gc.collect()
        gc.freeze()
        gc.set_threshold(_OBJECTS)
        gc.enable()


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Fail the collection of a file that skips itself where nothing may be skipped."""
    return _without_skip((yield))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Fail a test that skips itself where nothing may be skipped."""
    return _without_skip((yield))


def _without_skip(report: _Report) -> _Report:
    if report.outcome == "skipped" and os.environ.get("CI") and not hasattr(report, "wasxfail"):
        why = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr
        report.outcome, report.longrepr = "failed", f"{report.nodeid}: skipped where nothing may be: {why}"
    return report


@pytest.hookimpl(trylast=True)
def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Name what failed, with the command that runs it alone, and why tests were skipped."""
    reports = [each for kind in ("failed", "error") for each in terminalreporter.stats.get(kind, ())]
    failed = {each.nodeid: each for each in reversed(reports)}
    reasons = Counter(each.longrepr[2] for each in terminalreporter.stats.get("skipped", ()))
    if failed or reasons:
        terminalreporter.section(f"{len(failed)} failed, each with the command that runs it alone")
    for name, report in list(failed.items())[:_LISTED]:
        crash = getattr(report.longrepr, "reprcrash", None)
        reason = str(crash.message if crash else report.longrepr).strip().partition("\n")[0]
        terminalreporter.write_line(f".venv/bin/pytest -n 0 {shlex.quote(name)}  # {reason[:80]}")
    if len(failed) > _LISTED:
        terminalreporter.write_line(f"and {len(failed) - _LISTED} more, which the lines above name")
    for reason, count in reasons.most_common(_LISTED):
        terminalreporter.write_line(f"skipped {count}: {reason}")


@pytest.fixture(scope="session")
def kafka(request: pytest.FixtureRequest) -> Iterator[str]:
    """Return the `host:port` of a broker that all tests share.

    Each test uses its own topics and groups, and no test stops the broker.
    """
    shared = getattr(request.config, "workerinput", {}).get("kafka")
    if shared:
        yield shared
        return
    with started_stack(redis=False) as stack:
        yield stack.kafka


@pytest.fixture(scope="module")
def _own_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalServer]:
    with running(kafka_server(tmp_path_factory.mktemp("kafka"))) as server:
        yield server


@pytest.fixture
def broker(_own_broker: LocalServer) -> Iterator[LocalServer]:
    """Return a broker that a test may freeze or kill. The tests of a module share it, and find it running."""
    yield _own_broker
    _own_broker.resume()
    _own_broker.start()


@pytest.fixture(scope="session")
def redis_url() -> Iterator[str]:
    """Return the URL of a Redis that all tests share.

    Each test uses its own key prefix, and no test flushes or stops the server.
    """
    with started_stack(kafka=False) as stack:
        yield stack.redis


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[LocalServer]]:
    """Return the nodes of a Redis Cluster."""
    with redis_cluster(tmp_path_factory.mktemp("cluster")) as servers:
        yield servers


@pytest.fixture(autouse=True)
def _command_leaves_no_trace() -> Iterator[None]:
    """Undo what a command that ran in this process has set, so that no test depends on those before it.

    That is its log (`cli.logs`), the hooks for crashes, and the handler of Ctrl-C.
    """
    loggers = [logging.getLogger(name) for name in (None, *_CONFIGURED)]
    levels, handlers = [logger.level for logger in loggers], loggers[0].handlers[:]
    hooks, interrupt = (sys.excepthook, threading.excepthook), signal.getsignal(signal.SIGINT)
    yield
    for logger, level in zip(loggers, levels, strict=True):
        logger.setLevel(level)
    loggers[0].handlers[:] = handlers
    sys.excepthook, threading.excepthook = hooks
    signal.signal(signal.SIGINT, interrupt)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup() -> Iterator[None]:
    """Skip a test whose fixtures need a service that this machine cannot run."""
    try:
        return (yield)
    except StackUnavailableError as error:
        pytest.skip(str(error))
