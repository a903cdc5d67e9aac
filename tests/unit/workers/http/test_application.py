"""No page of another site reads an answer by letting its own name lead to our address."""

import asyncio

import aiohttp
from aiohttp import web

from nearstream.workers.http.application import application, listening
from nearstream.workers.http.openapi import OPEN_PATHS
from nearstream.workers.http.requests import BODIES, IN_USE, Gate, read_body

BODY_BYTES = 100_000
TOKEN = "a-token-for-all-of-them"  # noqa: S105 - a made-up one
PATHS = ("/v1/anything", "/missing", "/metrics", "/live/", *sorted(OPEN_PATHS))


async def _answer(_: web.Request) -> web.Response:
    return web.Response(text="an answer")


async def _codes(tokens: str, **headers: str) -> dict[tuple[str, str], int]:
    app = application(Gate(tokens))
    app.router.add_route("*", "/v1/anything", _answer)
    async with listening(app, "127.0.0.1:0") as address, aiohttp.ClientSession() as session:
        found = {}
        for path in PATHS:
            for method in ("GET", "POST", "DELETE"):
                async with session.request(method, f"http://{address}{path}", headers=headers) as response:
                    found[method, path] = response.status
        return found


async def test_a_path_is_answered_under_a_name_of_ours_or_with_a_token_alone() -> None:
    for name in ("evil.example", "evil.example:9465", "localhost.evil.example"):
        assert set((await _codes("", Host=name, Origin=f"http://{name}")).values()) == {403}
    for name in ("localhost:1", "127.0.0.1", "[::1]:9465"):
        codes = await _codes("", Host=name)
        assert codes["GET", "/v1/anything"] == codes["POST", "/v1/anything"] == 200
        assert 403 not in codes.values()
    allowed = await _codes(TOKEN, Host="mail.example", Authorization=f"Bearer {TOKEN}")
    assert allowed["GET", "/v1/anything"] == 200
    assert (await _codes(TOKEN, Host="mail.example"))["GET", "/v1/anything"] == 401


async def test_the_memory_of_a_body_is_given_back_when_nothing_needs_it() -> None:
    app = application(Gate(""))
    in_use: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def answer(request: web.Request) -> web.Response:
        await read_body(request, BODY_BYTES)
        if "learn" in request.query:
            request[IN_USE] = in_use
        return web.Response(text="an answer")

    app.router.add_post("/", answer)
    whole = app[BODIES].left
    async with listening(app, "127.0.0.1:0") as address, aiohttp.ClientSession() as session:
        for query, held in (("", 0), ("?learn", BODY_BYTES)):
            async with session.post(f"http://{address}/{query}", data=bytes(BODY_BYTES)) as response:
                await response.read()
            assert app[BODIES].left == whole - held
        in_use.set_result(None)
        await asyncio.sleep(0)
        assert app[BODIES].left == whole
