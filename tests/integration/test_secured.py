"""Kafka and Redis with TLS, passwords and ACLs.

The documented permissions suffice, and errors name what is wrong.
"""

import asyncio
import json
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from urllib.parse import quote

import aiohttp
import pytest
from redis import Redis

from nearstream.schemas.documents.record import ProducerRecord
from nearstream.schemas.topics.table import DEAD_LETTERS, DOCUMENTS
from nearstream.streams.store.limits import IndexUnavailableError
from nearstream.workers.config.exit_codes import Exit
from nearstream.workers.config.settings import Settings, SettingsError
from nearstream.workers.kafka import client as kafka_client
from nearstream.workers.kafka import errors as kafka_errors
from nearstream.workers.kafka import offsets as kafka_offsets
from nearstream.workers.kafka.security import tokens
from nearstream.workers.pipeline.deployment import Deployment
from nearstream.workers.redis.index.index import RedisIndex
from tests.devstack.server import free_ports
from tests.fault.agreement import disagreement
from tests.support.deployment import LINES, LocalDeployment, ids, until
from tests.support.mail import command, log_says
from tests.support.matching import prose
from tests.support.secured import KAFKA_ACLS, Secured, password, secured_servers
from tests.support.token_server import bearer, token_server

pytestmark = pytest.mark.timeout(600)  # the servers take a while on a busy machine

USERS = ("nearstream", "crawler", "dashboard", "onlooker", "api")
TEXT, OTHER = prose(1), prose(2)
NEAR = f"one more word and {TEXT}"
BEARER = {"kafka_sasl_mechanism": "OAUTHBEARER"}
ACLS = f"{KAFKA_ACLS} --bootstrap-server $BROKER"


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    with secured_servers(tmp_path_factory.mktemp("secured"), USERS) as servers:
        onlooker = f"{ACLS} --add --allow-principal User:onlooker --operation Describe"
        servers.kafka.acls([f"{onlooker} --topic nearstream. --resource-pattern-type prefixed"])
        yield servers


async def test_s20_the_documented_rights_suffice_for_workers_commands_and_all_that_the_api_does(
    secured: Secured,
) -> None:
    produced = secured.deployment("crawler").run("produce", "-", "--quiet", given=b"\n".join(LINES[:60]))
    assert (produced.returncode, produced.stderr) == (0, b"sent 60, refused 0\n")
    worker, admin = secured.deployment("nearstream"), secured.deployment("admin")
    signer = secured.deployment("nearstream", redis=secured.redis.settings(user="signer")["NEARSTREAM_REDIS"])
    with signer.worker("sign"), worker.worker("match") as process:
        await worker.drained()
        doctor = worker.run("doctor")
        assert (doctor.returncode, b"index     ready" in doctor.stdout) == (0, True)
        assert worker.run("lag").returncode == 0
        tailed = secured.deployment("dashboard").run("tail", "--from-start", "--until-end", "--json")
        verdicts, events = await admin.verdicts(), await admin.events()
        assert (len(ids(verdicts)), len(ids(events)) > 5) == (60, True)
        assert {json.loads(line)["event_id"] for line in tailed.stdout.splitlines()} == ids(verdicts) | ids(events)
        assert await disagreement(admin) == {}
        async with _serving(secured) as session:
            await _ask_for_everything(session, worker)
        assert process.poll() is None
    assert process.returncode == 0
    assert "permission" not in (secured.logs / "api.log").read_text()
    assert _refusal(signer.run("worker", "match")).startswith("NEARSTREAM_REDIS: the server refuses us: ")


async def _ask_for_everything(session: aiohttp.ClientSession, worker: LocalDeployment) -> None:
    name = "<1@a.example>"
    assert (await _check(session, OTHER))["verdict"] == "none"
    assert (await _check(session, TEXT, learn="1"))["verdict"] == "none"
    await worker.drained()
    assert (await _check(session, NEAR))["verdict"] == "near_duplicate"
    await _accepted(session, "POST", "/v1/label", id=name, label="spam")
    await worker.drained()
    assert (await _check(session, NEAR))["labels"] == {"spam": 1, "ham": 0}
    await until(lambda: _shows(session, name))
    async with session.get(f"/v1/families/{quote(name, safe='')}/members") as response:
        assert (await response.json())["size"] == 1
    async with session.get("/v1/skip", params={"url": "https://a.example/"}) as response:
        assert (await response.json())["reason"] == ""
    async with session.post("/v1/skip", json={"urls": ["https://a.example/"]}) as response:
        assert (await response.json())["degraded"] is False
    async with session.get("/v1/due", params={"host": "a.example"}) as response:
        assert (await response.json())["degraded"] is False
    async with session.get("/readyz") as response:
        assert response.status == 200
    await _accepted(session, "DELETE", f"/v1/documents/default/{quote(name, safe='')}")
    await worker.drained()
    assert (await _check(session, NEAR))["verdict"] == "none"


async def test_s20_f24_tokens_that_expire_are_renewed_and_a_missing_right_is_named(secured: Secured) -> None:
    admin = secured.deployment("admin")
    before, told = len(ids(await admin.verdicts())), 0
    with token_server(seconds=2.0) as provider:
        source = {"kafka_token_url": provider.url, "kafka_token_form": "scope=a+b"}
        worker = secured.deployment("nearstream", **BEARER | source)
        with worker.worker() as process:
            await until(lambda: _logged(secured, "assigned: nearstream"))
            renewed = len(provider.asked) + 3
            while len(provider.asked) < renewed:
                text = f"The {told}th text that is sent while tokens expire, of which no other text has a word."
                await admin.send([worker.document(f"while-{told}", text)])
                told += 1
                await asyncio.sleep(0.1)
            await admin.drained()
            assert process.poll() is None
            assert provider.asked[0] == {"grant_type": ["client_credentials"], "scope": ["a b"]}
            assert len(ids(await admin.verdicts())) == before + told
            assert await admin.letters() == []
            acknowledged = await _committed(admin)
            right = "--operation Write --topic nearstream.dead-letters.v1"
            secured.kafka.acls([f"{ACLS} --remove --force --allow-principal User:nearstream {right}"])
            await admin.send([ProducerRecord(DOCUMENTS.name, b"k", b"\xff", [])])
            assert await asyncio.to_thread(process.wait, 120) == Exit.MISCONFIGURED
    assert await _logged(secured, f": topic {DEAD_LETTERS.name}: permission WRITE is missing\n")
    assert await _committed(admin) == acknowledged
    again = secured.deployment("nearstream").run("worker")
    assert _refusal(again) == f"topic {DEAD_LETTERS.name}: permission DESCRIBE is missing"
    assert await _committed(admin) == acknowledged
    # A right that a worker lacks is named when the worker uses it first, and nothing is lost until it is granted.
    onlooker, granting = secured.deployment("onlooker"), f"{ACLS} --add --allow-principal User:onlooker --operation"
    for missing, right in (
        ("permission WRITE on a topic, or IDEMPOTENT_WRITE on the cluster,", f"Write --topic {DEAD_LETTERS.name}"),
        ("group nearstream: permission READ", "Read --group nearstream"),
        (f"topic {DOCUMENTS.name}: permission READ", f"Read --topic {DOCUMENTS.name}"),
    ):
        done = onlooker.run("worker", "sign")
        assert done.returncode == Exit.MISCONFIGURED
        assert done.stderr.decode().endswith(f": {missing} is missing\n")
        assert await _committed(admin) == acknowledged
        secured.kafka.acls([f"{granting} {right}"])
    with onlooker.worker("sign"):
        await admin.drained()
    assert len(await admin.letters()) == 1
    refused = secured.deployment("dashboard").run("produce", "-", given=LINES[0])
    assert _refusal(refused) == f"topic {DOCUMENTS.name}: permission DESCRIBE is missing"


async def test_tokens_are_read_again_for_every_connection_and_why_there_is_none_is_told(
    secured: Secured, tmp_path: Path
) -> None:
    path = tmp_path / "token"
    from_file = {"kafka_username": "", "kafka_password": "", "kafka_token_path": str(path)}
    reader = secured.deployment("nearstream", **BEARER | from_file).settings
    provider = tokens(reader)
    assert provider is not None
    for user in ("nearstream", "crawler"):
        path.write_text(bearer(user, 60) + "\n")
        assert await provider.token() == path.read_text().strip()
    assert await kafka_offsets.end_offsets(reader, DOCUMENTS.name, 10.0)
    for given, expected in (
        (bearer("nearstream", -600), "SASL_MECHANISM: the broker refuses the token: .*invalid_token"),
        ("not a token", "TOKEN_PATH: expected a file with a token"),
    ):
        path.write_text(given)
        await _kafka_refuses(reader, f"NEARSTREAM_KAFKA_{expected}")
    path.unlink()
    await _kafka_refuses(reader, "NEARSTREAM_KAFKA_TOKEN_PATH: expected a readable file: No such file")
    with token_server(seconds=60) as server:
        asked = BEARER | {"kafka_token_url": server.url}
        wrong = secured.deployment("nearstream", **asked, kafka_password="wr0ng").settings  # noqa: S106 - made up
        refusal = "NEARSTREAM_KAFKA_TOKEN_URL: the provider refuses a token: status 401, invalid_client"
        await _kafka_refuses(wrong, refusal)
        server.status = 503
        with pytest.raises(kafka_errors.KafkaUnreachableError, match=f"no token from {server.url}: status 503"):
            async with kafka_client.admin(secured.deployment("nearstream", **asked).settings, 0.6):
                pass


async def _kafka_refuses(settings: Settings, expected: str) -> None:
    with pytest.raises(SettingsError, match=expected):
        async with kafka_client.admin(settings, 10.0):
            pass


@asynccontextmanager
async def _serving(secured: Secured) -> AsyncIterator[aiohttp.ClientSession]:
    """Run `nearstream serve` as its own user for the block, and yield a client of it."""
    (port,) = free_ports(1)
    redis = secured.redis.settings(user="api")["NEARSTREAM_REDIS"]
    deployment = secured.deployment(
        "api", redis=redis, api=f"127.0.0.1:{port}", api_seconds="60", label_delay_seconds="0"
    )
    log = secured.logs / "api.log"
    with command(log, "serve", **deployment.given()):
        await log_says(log, "API: http://")
        await log_says(log, "connected to Kafka")
        async with aiohttp.ClientSession(f"http://127.0.0.1:{port}") as session:
            yield session


async def _check(session: aiohttp.ClientSession, text: str, **query: str) -> dict[str, object]:
    """Return the answer about a text, which is whole and, if that was asked, learned once Kafka is connected."""
    headers = {"Content-Type": "text/plain", "nearstream-id": "<1@a.example>"}
    async with asyncio.timeout(60):
        while True:
            async with session.post("/v1/check", data=text, params=query, headers=headers) as response:
                assert response.status == 200
                answer: dict[str, object] = await response.json()
            assert not answer["degraded"], answer
            assert answer["learn_reason"] in ("", "kafka_unavailable"), answer
            if answer["learned"] == bool(query):
                return answer


async def _accepted(session: aiohttp.ClientSession, method: str, path: str, **said: object) -> None:
    """Send a change until Kafka has confirmed it."""
    async with asyncio.timeout(60):
        while True:
            async with session.request(method, path, json=said or None) as response:
                if response.status != 503:
                    assert response.status == 202, await response.text()
                    return


def test_the_user_of_the_api_may_run_nothing_that_writes(secured: Secured) -> None:
    with Redis.from_url(f"redis://{secured.redis.server.address}/0", decode_responses=True) as admin:
        user = admin.acl_getuser("api")
        granted = {name.removeprefix("+") for name in user["commands"] if name.startswith("+")}
        assert not any(_writes(admin, name) for name in granted - {"fcall_ro"})
        assert "permission" in admin.execute_command("ACL DRYRUN", "api", "HGET", "other", "field")


def _writes(admin: Redis, name: str) -> bool:
    """Return whether a command writes."""
    facts = admin.execute_command("COMMAND", "INFO", name)[name.lower()]
    return "write" in facts["flags"]


async def _shows(session: aiohttp.ClientSession, name: str) -> bool:
    """Return whether the live page has a document with its verdict, which came through Kafka, and its states."""
    async with session.get("/v1/document", params={"id": name}) as response:
        shown = await response.json()
    return response.status == 200 and bool(shown["verdict"] and shown["states"])


async def test_s17_a_wrong_password_is_told_without_it(secured: Secured) -> None:
    wrong = secured.deployment("nearstream", kafka_password="wr0ng-kafka", log_level="debug")  # noqa: S106 - made up
    done = wrong.run("worker")
    assert _refusal(done).startswith("NEARSTREAM_KAFKA_USERNAME, NEARSTREAM_KAFKA_PASSWORD: refused by the broker")
    of_redis = secured.redis.settings("wr0ng-redis")["NEARSTREAM_REDIS"]
    doctor = secured.deployment("nearstream", redis=of_redis).run("doctor")
    assert (doctor.returncode, b"NEARSTREAM_REDIS: the server refuses us" in doctor.stdout) == (1, True)
    told = done.stdout + done.stderr + doctor.stdout + doctor.stderr
    told += b"".join(path.read_bytes() for path in secured.logs.glob("*.log"))
    for secret in ("wr0ng-kafka", "wr0ng-redis", password("nearstream")):
        assert secret.encode() not in told


async def test_what_kafka_does_not_accept_is_named(secured: Secured) -> None:
    plain, other = secured.kafka.server.address, secured.kafka.address.replace("127.0.0.1", "localhost")
    changed: dict[str, str]
    for changed, expected in (
        ({"kafka_password": "wrong"}, "USERNAME, NEARSTREAM_KAFKA_PASSWORD: refused by the broker"),
        ({"kafka_sasl_mechanism": "SCRAM-SHA-256"}, "SASL_MECHANISM: SCRAM-SHA-256 is refused"),
        ({"kafka_ca_path": ""}, "CA_PATH: the broker's certificate is not accepted: "),
        ({"kafka": other}, "CA_PATH: .*Hostname mismatch.*(broker localhost:[0-9]+)"),
        ({"kafka": plain, "kafka_security": "SASL_PLAINTEXT", "kafka_ca_path": ""}, "SECURITY: "),
    ):
        await _kafka_refuses(secured.deployment("nearstream", **changed).settings, f"NEARSTREAM_KAFKA_{expected}")
    unset = dict.fromkeys(("kafka_security", "kafka_username", "kafka_password", "kafka_ca_path"), "")
    for changed in (unset, {"kafka": plain}):  # to another protocol a broker says nothing
        with pytest.raises(kafka_errors.KafkaUnreachableError, match=r"is NEARSTREAM_KAFKA_SECURITY=[A-Z_]+ right\?"):
            async with kafka_client.admin(secured.deployment("nearstream", **changed).settings, 0.6):
                pass
    settings = secured.deployment("nearstream", kafka_sasl_mechanism="PLAIN").settings
    assert await kafka_offsets.end_offsets(settings, DOCUMENTS.name, 10.0)


async def _opened(deployment: Deployment) -> None:
    """Open an index, again where a busy machine connects too slowly."""
    async with asyncio.timeout(60):
        while True:
            with suppress(IndexUnavailableError):
                index = await RedisIndex.open(deployment.index_address(), partitions=6, may_create=True)
                return await index.close()


async def _committed(deployment: LocalDeployment) -> dict[int, int]:
    ends = await kafka_offsets.end_offsets(deployment.settings, DOCUMENTS.name, 10.0)
    return await kafka_offsets.committed(deployment.settings, DOCUMENTS.name, ends)


async def _logged(secured: Secured, text: str) -> bool:
    """Return whether the newest worker has logged this text."""
    return text in max(secured.logs.glob("*.log"), key=lambda path: path.stat().st_mtime_ns).read_text()


def _refusal(done: subprocess.CompletedProcess[bytes]) -> str:
    """Return the line with which a command is refused."""
    assert done.returncode == Exit.MISCONFIGURED
    assert b"Traceback" not in done.stderr
    return done.stderr.decode().splitlines()[-1].removeprefix("nearstream: ")
