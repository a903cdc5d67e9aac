"""What tests of several rooms of the workers start."""

from collections.abc import Iterator
from contextlib import closing

import pytest

from nearstream.workers.crawl.html_processes import HtmlProcesses


@pytest.fixture(scope="module")
def processes() -> Iterator[HtmlProcesses]:
    with closing(HtmlProcesses(1, deadline_seconds=60)) as made:
        yield made
