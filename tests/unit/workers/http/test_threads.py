"""Work in a thread keeps nothing when it is given up."""

import asyncio
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor

import pytest

from nearstream.workers.http.work import in_thread


class Body:
    """Something that a weak reference may name."""


async def test_work_that_is_given_up_keeps_no_arguments() -> None:
    free = threading.Event()
    with ThreadPoolExecutor(1) as pool:
        busy = in_thread(pool, free.wait)
        body = Body()
        known = weakref.ref(body)
        waiting = in_thread(pool, id, body)
        del body
        assert known() is not None
        waiting.cancel()
        await asyncio.sleep(0)
        assert known() is None
        free.set()
        assert await busy


async def test_results_and_errors_come_back() -> None:
    with ThreadPoolExecutor(1) as pool:
        assert await in_thread(pool, divmod, 7, 2) == (3, 1)
        with pytest.raises(ZeroDivisionError):
            await in_thread(pool, divmod, 7, 0)
