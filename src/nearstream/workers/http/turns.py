"""Turns to work, of which the newest that waits gets the next."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class Turns:
    """Lets a few work at a time.

    Under more load than the machine can carry, work that is given up at a deadline would leave time for none that ends
    before it. The newest has the most time left.
    """

    def __init__(self, most: int) -> None:
        """Let at most so many work at a time."""
        self._free = most
        self._waiting: list[asyncio.Future[None]] = []

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """Wait for a turn, and have it during the block."""
        if self._free:
            self._free -= 1
        else:
            await self._given()
        try:
            yield
        finally:
            self._pass_on()

    async def _given(self) -> None:
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(future)
        try:
            await future
        except asyncio.CancelledError:
            if not future.cancelled():  # it was given and is not taken
                self._pass_on()
            elif future in self._waiting:  # or it would stay as long as newer ones come
                self._waiting.remove(future)
            raise

    def _pass_on(self) -> None:
        while self._waiting:
            newest = self._waiting.pop()
            if not newest.done():
                newest.set_result(None)
                return
        self._free += 1
