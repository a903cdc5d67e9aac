"""Play two days of made-up mail through a worker and the API, with labels on its waves.

    python -m benchmarks.mail.reach [--seed N] [--copies N] [--ham N] [--labels-on-ham] [--rspamd]

It starts a Kafka and a Redis of its own, and needs no corpus. Of the first day all ham is learned. On the second day
the first five mails of each wave are learned, the first is labelled as spam, and all others are asked about and
learned, mixed with ham. `--labels-on-ham` also labels a mail of each kind of ham as spam, as a user does by mistake.
`--rspamd` asks fuzzy_check of rspamd too, which has learned the labelled mails with weight 10.
"""

import argparse
import asyncio
import json
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass
from email import message_from_bytes
from email.utils import parsedate_to_datetime
from pathlib import Path

import aiohttp

from benchmarks.mail.day import Mail, clones, ham, waves
from benchmarks.mail.fuzzy import fuzzy_server
from benchmarks.stream.deployed import cpu_seconds
from tests.devstack.kafka import kafka_server
from tests.devstack.redis import redis_server
from tests.devstack.server import free_ports, running
from tests.support.deployment import LocalDeployment, deployed, until

_FIRST = 5  # mails of a wave that come before its label


@asynccontextmanager
async def _mail_server(
    kafka: str, redis: str, folder: Path
) -> AsyncIterator[tuple[LocalDeployment, aiohttp.ClientSession, int]]:
    """Yield a deployment with a worker and an API, a client of that, and its process."""
    api = f"127.0.0.1:{free_ports(1)[0]}"
    given = {"profile": "mail", "hash_key": "k" * 32, "api": api, "label_delay_seconds": "0", "api_seconds": "5"}
    async with deployed(kafka, redis, folder, **given) as local:
        with local.worker(), local.worker("serve", ("nearstream",)) as serve:
            async with aiohttp.ClientSession(f"http://{api}") as client:

                async def is_up() -> bool:
                    try:
                        async with client.get("/readyz") as answer:
                            return answer.status == 200
                    except aiohttp.ClientError:
                        return False

                await until(is_up)
                yield local, client, serve.pid


async def _ask(client: aiohttp.ClientSession, mail: Mail, query: str = "") -> dict[str, object]:
    sent_at = parsedate_to_datetime(message_from_bytes(mail.raw)["Date"])
    headers = {"Content-Type": "message/rfc822", "nearstream-observed-at": sent_at.isoformat()}
    async with client.post(f"/v1/check{query}", data=mail.raw, headers=headers) as answer:
        return dict(await answer.json())


async def _learn(client: aiohttp.ClientSession, mails: Sequence[Mail]) -> None:
    for mail in mails:

        async def is_learned(mail: Mail = mail) -> bool:
            return bool((await _ask(client, mail, "?learn=1"))["learned"])

        await until(is_learned)


async def _label(client: aiohttp.ClientSession, mail: Mail) -> None:
    async with client.post("/v1/label", json={"id": mail.id, "label": "spam", "expected": True}) as answer:
        answer.raise_for_status()


def said(answer: dict[str, object]) -> str:
    """Return what an answer says of a mail: its verdict, or a symbol beside a verdict that says nothing."""
    if answer["verdict"] in ("known_bad", "near_bad", "known_good", "disputed"):
        return str(answer["verdict"])
    for name in ("contains", "attachments"):
        held = answer[name]
        if isinstance(held, dict) and held["labels"]["spam"]:
            return name
    return str(answer["verdict"])


@dataclass(frozen=True)
class Fuzzy:
    """An rspamd with fuzzy_check."""

    address: str  # where it scans
    controller: str  # where it learns
    client: aiohttp.ClientSession

    async def learn(self, mail: Mail) -> None:
        """Learn a mail as spam. One that is too short has no hashes and is refused."""
        headers = {"Flag": "11", "Weight": "10"}
        async with self.client.post(f"http://{self.controller}/fuzzyadd", data=mail.raw, headers=headers) as answer:
            await answer.read()

    async def said(self, mail: Mail) -> str:
        """Return whether a mail is like one that was learned."""
        async with self.client.post(f"http://{self.address}/checkv2", data=mail.raw) as answer:
            symbols = json.loads(await answer.read())["symbols"]
        return "denied" if symbols.get("FUZZY_DENIED", {}).get("score", 0) > 0 else "none"


async def play(
    options: argparse.Namespace, kafka: str, redis: str, folder: Path, rspamd: tuple[str, str] | None
) -> dict[str, object]:
    """Play the days, and return what was said of the mails that were asked about."""
    draw, spam = (
        random.Random(options.seed),
        [*waves(options.seed, options.copies), *clones(options.seed, options.copies)],
    )
    good = list(ham(options.seed, options.ham))
    first_day = [mail for mail in good if mail.day == 1]
    rest = [mail for wave in spam for mail in wave[_FIRST:]] + [mail for mail in good if mail.day == 2]
    draw.shuffle(rest)
    found: dict[str, dict[str, Counter[str]]] = {}
    fuzzy: dict[str, dict[str, Counter[str]]] = {}
    async with _mail_server(kafka, redis, folder) as (local, client, pid), aiohttp.ClientSession() as other:
        beside = None if rspamd is None else Fuzzy(*rspamd, other)
        await _learn(client, [*first_day, *(mail for wave in spam for mail in wave[:_FIRST])])
        labelled = [wave[0] for wave in spam]
        if options.labels_on_ham:
            labelled += {mail.kind: mail for mail in first_day if mail.truth == "ham"}.values()
        for mail in labelled:
            await _label(client, mail)
            if beside is not None:
                await beside.learn(mail)
        await local.drained()
        for mail in rest:
            answer = await _ask(client, mail, "?learn=1")
            found.setdefault(mail.truth, {}).setdefault(mail.kind, Counter())[said(answer)] += 1
            if beside is not None:
                fuzzy.setdefault(mail.truth, {}).setdefault(mail.kind, Counter())[await beside.said(mail)] += 1
        await local.drained()
        used, began = cpu_seconds(pid), time.perf_counter()
        for mail in rest:
            await _ask(client, mail)
        cpu, seconds = cpu_seconds(pid) - used, time.perf_counter() - began
    figures: dict[str, object] = {truth: _shares(kinds) for truth, kinds in sorted(found.items())}
    figures["fuzzy_check"] = {truth: _shares(kinds) for truth, kinds in sorted(fuzzy.items())}
    both = (found, fuzzy) if fuzzy else (found,)
    kinds = {f"{truth}: {kind}": [dict(each[truth][kind]) for each in both] for truth in found for kind in found[truth]}
    return figures | {
        "cpu_ms": round(1000 * cpu / len(rest), 2),
        "ms": round(1000 * seconds / len(rest), 2),
        "kinds": kinds,
    }


def _shares(kinds: dict[str, Counter[str]]) -> dict[str, float]:
    """Return the shares of what was said of mails of some kinds."""
    total = sum(kinds.values(), Counter[str]())
    return {"mails": total.total()} | {name: round(count / total.total(), 4) for name, count in total.most_common()}


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--copies", type=int, default=20, help="mails of each wave")
    parser.add_argument(
        "--ham", type=int, default=24, help="mails of each kind of ham, of templates five times as many"
    )
    parser.add_argument("--labels-on-ham", action="store_true")
    parser.add_argument("--rspamd", action="store_true")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with ExitStack() as servers:
            kafka = servers.enter_context(running(kafka_server(folder / "kafka")))
            redis = servers.enter_context(running(redis_server(folder / "redis")))
            rspamd, controller = fuzzy_server(folder / "rspamd") if options.rspamd else (None, "")
            beside = (servers.enter_context(running(rspamd)).address, controller) if rspamd else None
            figures = asyncio.run(play(options, kafka.address, f"redis://{redis.address}/0", folder, beside))
        print(json.dumps(figures, indent=1, ensure_ascii=False))
    return 0


if __name__ == "__main__":
    sys.exit(main())
