"""The status port of a worker or of a mail filter: metrics, health, readiness and lag.

It is read-only, and served by a thread of its own, so it answers while the event loop of the process is blocked.
"""

import asyncio
import logging
import threading
from collections.abc import Sequence
from concurrent.futures import Future
from functools import partial
from time import monotonic

from aiohttp import web

from nearstream.workers.config.settings import AUTO, Settings, SettingsError
from nearstream.workers.http.application import application, listening
from nearstream.workers.http.requests import SECURITY_HEADERS, Gate, RefusedError, json_response
from nearstream.workers.monitoring.health import Health
from nearstream.workers.monitoring.metrics import EXPOSITION_TYPE, exposition
from nearstream.workers.monitoring.watchdog import LOOP_SECONDS

DEFAULT_ADDRESS = "127.0.0.1:9464"

log = logging.getLogger(__name__)


def serve_status(settings: Settings, health: Health, gate: Gate, default: str = DEFAULT_ADDRESS) -> str:
    """Start the status server, and return its address. The address is empty if the server is off.

    The server runs until the process ends.
    Port 0 means any free port, and `auto` the default address of this kind of process, with a free port if its own is
    taken.

    Raises:
        SettingsError: The address cannot be used.
    """
    if settings.status == "off":
        return ""
    free = f"{default.rpartition(':')[0]}:0"  # where another process on this host has the default port
    addresses = (default, free) if settings.status == AUTO else (settings.status,)
    opened = Future[str]()
    serving = partial(_serve, addresses, health, gate, opened)
    threading.Thread(target=lambda: asyncio.run(serving()), name="status", daemon=True).start()
    address = opened.result()
    log.info("status: http://%s/metrics /healthz /readyz /lag", address)
    return address


async def _serve(addresses: Sequence[str], health: Health, gate: Gate, opened: Future[str]) -> None:
    """Serve at the first address that is free, without end."""
    first, *others = addresses
    app = application(gate)
    app.router.add_get("/metrics", answer_metrics)
    for path, handler in (("/healthz", _healthz), ("/readyz", _readyz), ("/lag", _lag)):
        app.router.add_get(path, partial(handler, health))
    app.router.add_get("/{path:.*}", _no_such_path)
    try:
        async with listening(app, first, "NEARSTREAM_STATUS") as address:
            opened.set_result(address)
            await asyncio.Event().wait()
    except SettingsError as error:
        if not others:
            opened.set_exception(error)
        else:
            await _serve(others, health, gate, opened)


async def answer_metrics(_: web.Request) -> web.Response:
    """Answer with all metrics of the process."""
    return web.Response(body=exposition(), headers={**SECURITY_HEADERS, "Content-Type": EXPOSITION_TYPE})


async def _healthz(health: Health, _: web.Request) -> web.Response:
    stalled = health.ticked is not None and monotonic() - health.ticked > LOOP_SECONDS
    return json_response({"healthy": not stalled}, 503 if stalled else 200)


async def _readyz(health: Health, _: web.Request) -> web.Response:
    reason = health.unready
    return json_response({"ready": not reason, "why": reason}, 503 if reason else 200)


async def _lag(health: Health, _: web.Request) -> web.Response:
    return json_response([row.as_json() for row in health.own_lags])


async def _no_such_path(_: web.Request) -> web.Response:
    raise RefusedError(404, "not_found", "expected /metrics, /healthz, /readyz or /lag")
