"""A former namespace is deleted with all its keys and no other, on one server and on a cluster, once that is agreed."""

import asyncio
import os
import sys

import pytest

from nearstream.schemas.documents.document import from_milliseconds
from nearstream.schemas.live.state import WorkerState
from nearstream.workers.redis.kept.worker_states import forget_worker, say_state
from nearstream.workers.redis.server.address import Connection
from nearstream.workers.redis.server.client import Client, keys_of, open_client, pipelined
from tests.devstack.server import LocalServer
from tests.support.forking import finished

STATE = WorkerState(worker="h:1", role="all", group="g", state="live", since=from_milliseconds(1), why="")


@pytest.mark.parametrize("is_cluster", [False, True], ids=["server", "cluster"])
async def test_only_a_former_namespace_is_deleted_and_only_once_that_is_agreed(
    is_cluster: bool, redis_url: str, nodes: list[LocalServer]
) -> None:
    url = f"redis+cluster://{nodes[0].address}" if is_cluster else redis_url
    former = f"former-{os.getpid()}"
    ours = f"{former}-2"
    environment = os.environ | {"NEARSTREAM_REDIS": url, "NEARSTREAM_NAMESPACE": ours}

    async def run(*words: str, given: bytes = b"") -> tuple[int, str]:
        command = [sys.executable, "-m", "nearstream", "namespace", "drop", *words]
        done = await asyncio.to_thread(finished, command, environment, given)
        return done.returncode, (done.stdout + done.stderr).decode()

    connection = Connection(url.replace("+cluster", ""), None, is_cluster)
    async with open_client(connection) as client:
        keys = [f"{{{former}:{number}}}x".encode() for number in range(2_500)]
        await pipelined(
            client, [("SET", key, 1) for key in (*keys, f"{{{ours}}}:x".encode(), f"{{{ours}:y}}".encode())]
        )
        saying = asyncio.create_task(_say(client, former))
        assert await run(former, "--yes") == (1, f"nearstream: {former} is in use: stop its 1 workers first\n")
        saying.cancel()
        await asyncio.wait([saying])
        await forget_worker(client, former, STATE.worker)
        assert (await run(ours, "--yes"))[0] == 1
        for answer in (b"", b"y\n"):
            code, told = await run(former, given=answer)
            assert (code, f"2500 keys of {former} will be deleted" in told) == (1, True)
        assert await _count(client, former) == 2_500
        assert (await run("a*"))[0] == 2
        code, told = await run(former, given=f"{former}\n".encode())
        assert (code, "deleted 2500 keys" in told, await _count(client, former)) == (0, True, 0)
        assert await _count(client, ours) == 2
        assert await run(former, "--yes") == (1, f"nearstream: no key is in the namespace {former}\n")


async def _say(client: Client, namespace: str) -> None:
    while True:
        await say_state(client, namespace, STATE)
        await asyncio.sleep(1)


async def _count(client: Client, namespace: str) -> int:
    return sum([1 for end in "}:" async for _ in keys_of(client, f"{{{namespace}{end}".encode())])
