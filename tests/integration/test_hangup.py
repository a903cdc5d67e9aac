"""SIGHUP ends no server, and gives the tokens of a file to one that runs."""

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import aiohttp
import pytest

from tests.devstack.server import free_ports
from tests.support.deployment import PATIENT_SECONDS, until

FORMER, NEW = "token-of-yesterday", "token-of-today-1"
# The command, the setting of its address and the one of its tokens, a path that needs one, and the answer to a token.
SERVERS = [
    ("serve", "NEARSTREAM_API", "NEARSTREAM_API_TOKEN_FILE", "/v1/live", 503),  # without an index it has no answer
    ("milter", "NEARSTREAM_STATUS", "NEARSTREAM_STATUS_TOKEN_FILE", "/metrics", 200),
]


@pytest.mark.parametrize(("command", "place", "tokens", "path", "status"), SERVERS)
async def test_a_new_token_holds_after_sighup_and_a_broken_file_changes_nothing(
    command: str, place: str, tokens: str, path: str, status: int, redis_url: str, tmp_path: Path
) -> None:
    (port, listen), file, log = free_ports(2), tmp_path / "tokens", tmp_path / "log"
    file.write_text(FORMER)
    given = {place: f"127.0.0.1:{port}", tokens: str(file), "NEARSTREAM_REDIS": redis_url}
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("NEARSTREAM_")}
    environment = inherited | given | {"NEARSTREAM_NAMESPACE": f"hangup-{os.getpid()}"}
    own = ["--listen", f"127.0.0.1:{listen}"] if command == "milter" else []
    process = _started([sys.executable, "-m", "nearstream", command, *own], environment, log)
    try:
        async with aiohttp.ClientSession(f"http://127.0.0.1:{port}") as session:

            async def answers(token: str, expected: int) -> bool:
                try:
                    async with session.get(path, headers={"Authorization": f"Bearer {token}"}) as response:
                        return response.status == expected
                except aiohttp.ClientError:
                    return False

            async def logged(text: str) -> bool:
                return text in log.read_text()

            await until(lambda: answers(FORMER, status), PATIENT_SECONDS)
            file.write_text("short")
            process.send_signal(signal.SIGHUP)
            variable = tokens.removesuffix("_FILE")
            await until(lambda: logged(f"SIGHUP: the former tokens stay: {variable}: "), PATIENT_SECONDS)
            assert await answers(FORMER, status)
            file.write_text(NEW)
            process.send_signal(signal.SIGHUP)
            await until(lambda: answers(NEW, status), PATIENT_SECONDS)
            assert await answers(FORMER, 401)
        process.terminate()
        assert await asyncio.to_thread(process.wait, PATIENT_SECONDS) == 0
    finally:
        process.kill()
        process.wait()


def _started(command: list[str], environment: dict[str, str], log: Path) -> subprocess.Popen[bytes]:
    with log.open("wb") as output:
        return subprocess.Popen(command, env=environment, stdout=output, stderr=output)
