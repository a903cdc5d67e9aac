"""A server that gets webhooks."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from aiohttp import web


@dataclass
class Receiver:
    """A server that gets webhooks, and what it answers: statuses in order, then 200."""

    address: str = ""
    statuses: list[int] = field(default_factory=list)
    got: list[tuple[bytes, dict[str, str]]] = field(default_factory=list)
    connections: int = 0

    async def answer(self, request: web.Request) -> web.Response:
        self.got.append((await request.read(), {name.lower(): value for name, value in request.headers.items()}))
        status = self.statuses.pop(0) if self.statuses else 200
        return web.Response(status=status, headers={"location": "/elsewhere"} if status == 302 else {}, body=b"x" * 9)

    @property
    def ids(self) -> list[str]:
        return [headers["nearstream-event-id"] for _, headers in self.got]


@asynccontextmanager
async def receiving(*statuses: int) -> AsyncIterator[Receiver]:
    receiver = Receiver(statuses=list(statuses))
    app = web.Application()
    app.router.add_post("/{path:.*}", receiver.answer)
    runner = web.AppRunner(app)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        receiver.address = "{}:{}".format(*runner.addresses[0])
        yield receiver
    finally:
        await runner.cleanup()
