"""A broker and a Redis for all tests, each started when the first test needs it."""

import os
from collections.abc import Iterator

import pytest

from tests.devstack.server import LocalServer, StackUnavailableError
from tests.devstack.stack import started_stack
from tests.support.cluster import redis_cluster


@pytest.fixture(scope="session")
def kafka() -> Iterator[str]:
    """Return the `host:port` of a broker that all tests share.

    Each test uses its own topics and groups, and no test stops the broker.
    """
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
