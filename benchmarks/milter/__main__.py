"""Measure how much later Postfix accepts a mail because `nearstream milter` reads it first.

    python -m benchmarks.milter [--mails N]

Two Postfix servers get the same mails in turns, one with the filter of `deploy/mail/postfix-main.cf` and one without.
The filter asks a `nearstream serve` over a new index. Postfix, Redis and all other servers are unpacked and started
here, which only root may do. Prints one JSON object: milliseconds from the command DATA to the reply that the mail was
taken. The exit code is 1 if the filter takes more than 15 ms of the median.
"""

import argparse
import asyncio
import json
import random
import smtplib
import statistics
import sys
import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from time import perf_counter

from benchmarks.speed.measure import positive
from tests.devstack.postfix import main_lines, postfix_folder, postfix_server
from tests.devstack.redis import redis_server
from tests.devstack.server import free_ports, running
from tests.support.mail import OTHER, campaign_api, campaign_mail, command, log_says, sink

GOAL_MS = 15.0
SEED = 1
_MAIN = Path(__file__).parent.parent.parent / "deploy/mail/postfix-main.cf"
_RELAYS = 20  # lines of header that a mail has on its way


def mail(name: str, draw: random.Random) -> bytes:
    """Return a mail with the headers of some relays: every second one is of a campaign that the index knows."""
    received = "".join(
        f"Received: from relay{number}.example by mx.example id {draw.randrange(10**9)};"
        " Mon, 02 Mar 2026 08:15:00 +0000\r\n"
        for number in range(_RELAYS)
    )
    body = campaign_mail(name) if draw.random() < 0.5 else campaign_mail(name, OTHER)
    return received.encode() + body


async def measure(mails: int, folder: Path) -> dict[str, object]:
    """Return how long both servers take, in milliseconds."""
    async with _servers(folder) as addresses:
        return await asyncio.to_thread(timed, mails, addresses)


def timed(mails: int, addresses: Sequence[str]) -> dict[str, object]:
    """Return how long each server takes for each of the mails, in milliseconds."""
    draw, taken = random.Random(SEED), {name: [0.0] * mails for name in ("without", "with the filter")}
    for number in range(mails):
        content = mail(f"timed{number}", draw)
        for address, times in zip(addresses, taken.values(), strict=True):
            times[number] = 1000 * _delivery(address, content)
    middle = {name: statistics.median(times) for name, times in taken.items()}
    without, marked = middle.values()
    return {
        "mails": mails,
        **{name: _spread(times) for name, times in taken.items()},
        "median added": round(marked - without, 1),
        "goal": GOAL_MS,
    }


def _delivery(address: str, content: bytes) -> float:
    """Return the seconds that a server takes for the command DATA, on a connection of its own."""
    host, port = address.rsplit(":", 1)
    with smtplib.SMTP(host, int(port), timeout=60) as client:
        client.ehlo()
        client.mail("shop@a.example")
        client.rcpt("anna@b.example")
        began = perf_counter()
        code, text = client.data(content)
        taken = perf_counter() - began
    if code != 250:
        raise RuntimeError(f"expected the server to take the mail, got {code} {text!r}")
    return taken


def _spread(times: Sequence[float]) -> dict[str, float]:
    tenths = statistics.quantiles(times, n=10)
    return {"p10": round(tenths[0], 1), "median": round(statistics.median(times), 1), "p90": round(tenths[-1], 1)}


@asynccontextmanager
async def _servers(folder: Path) -> AsyncIterator[tuple[str, str]]:
    """Start everything, and yield the addresses of the Postfix without and of the one with the filter."""
    (milter_port,) = free_ports(1)
    main = main_lines(_MAIN, _9466=str(milter_port))
    async with AsyncExitStack() as stack:
        redis = stack.enter_context(running(redis_server(folder / "redis")))
        api = await stack.enter_async_context(campaign_api(f"redis://{redis.address}/0", folder))
        listen, log = f"127.0.0.1:{milter_port}", folder / "milter.log"
        stack.enter_context(command(log, "milter", "--listen", listen, api=api.address))
        await log_says(log, f"milter: {listen}")
        kept, addresses = await stack.enter_async_context(sink()), []
        for settings in ({}, main):
            own = stack.enter_context(postfix_folder())
            postfix = stack.enter_context(running(postfix_server(own / "postfix", kept.address, settings)))
            addresses.append(postfix.address)
        yield addresses[0], addresses[1]


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mails", type=positive, default=200, help="mails for each server")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        found = asyncio.run(measure(options.mails, Path(folder)))
    print(json.dumps(found, indent=1))
    return int(float(str(found["median added"])) > GOAL_MS)


if __name__ == "__main__":
    sys.exit(main())
