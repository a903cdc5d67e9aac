"""A broker and a Redis for all tests, each started when the first test needs it."""

import os
from collections.abc import Iterator
from contextlib import ExitStack, suppress

import pytest
from hypothesis import settings
from xdist.workermanage import WorkerController

from tests.devstack.server import LocalServer, StackUnavailableError
from tests.devstack.stack import started_stack
from tests.support.cluster import redis_cluster

_KAFKA = pytest.StashKey[str]()

settings.register_profile("busy machine", deadline=None)  # an example may wait for the processor
settings.load_profile("busy machine")


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


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup() -> Iterator[None]:
    """Skip a test whose fixtures need a service that this machine cannot run.

    If `CI` is set, the test fails instead.
    """
    try:
        return (yield)
    except StackUnavailableError as error:
        if os.environ.get("CI"):
            raise
        pytest.skip(str(error))
