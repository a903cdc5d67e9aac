"""The log holds a line of many requests once a minute, and each other line."""

import logging

import pytest

from nearstream.workers.http.work import RareLog


async def test_a_line_is_logged_once_and_each_other_one_too(caplog: pytest.LogCaptureFixture) -> None:
    rare = RareLog(logging.getLogger("nearstream.test"))
    for _ in range(100):
        rare.warning("no right to read")
    rare.warning("no right to write, 100 %")
    assert caplog.messages == ["no right to read", "no right to write, 100 %"]


async def test_it_is_logged_again_after_a_minute(caplog: pytest.LogCaptureFixture) -> None:
    rare = RareLog(logging.getLogger("nearstream.test"))
    rare.warning("no right to read")
    rare.logged["no right to read"] -= 60.0
    rare.warning("no right to read")
    assert len(caplog.messages) == 2


async def test_what_is_remembered_has_a_bound() -> None:
    rare = RareLog(logging.getLogger("nearstream.test"))
    for number in range(1_000):
        rare.warning(f"line {number}")
    assert len(rare.logged) <= 64
