"""A broker beside a Redis for the whole session, started when the first test asks for one."""

import os
from collections.abc import Iterator

import pytest

from workers.local_stack import StackUnavailableError, started_stack


@pytest.fixture(scope="session")
def kafka() -> Iterator[str]:
    """`host:port` of a broker shared by all tests: each uses its own topics and groups, none stops it."""
    with started_stack(redis=False) as stack:
        yield stack.kafka


@pytest.fixture(scope="session")
def redis_url() -> Iterator[str]:
    """URL of a Redis shared by all tests: each uses its own key prefix, none flushes or stops it."""
    with started_stack(kafka=False) as stack:
        yield stack.redis


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup() -> Iterator[None]:
    """Skip a test whose fixtures need a service that this machine cannot have; fail it when `CI` is set."""
    try:
        return (yield)
    except StackUnavailableError as error:
        if os.environ.get("CI"):
            raise
        pytest.skip(str(error))
