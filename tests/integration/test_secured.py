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
from nearstream.workers.cli.demo import EXAMPLES
from nearstream.workers.config.exit_codes import Exit
from nearstream.workers.config.settings import SettingsError
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


async def test_s20_sasl_ssl_works_end_to_end_with_the_documented_rights_alone(secured: Secured) -> None:
    produced = secured.deployment("crawler").run("produce", "-", "--quiet", given=b"\n".join(LINES[:60]))
    assert (produced.returncode, produced.stderr) == (0, b"sent 60, refused 0\n")
    worker = secured.deployment("nearstream")
    with worker.worker() as process:
        await worker.drained()
        doctor = worker.run("doctor")
        assert (doctor.returncode, b"index     ready" in doctor.stdout) == (0, True)
        assert process.poll() is None
    assert process.returncode == 0
    assert worker.run("lag").returncode == 0
    tailed = secured.deployment("dashboard").run("tail", "--from-start", "--until-end", "--json")
    admin = secured.deployment("admin")
    verdicts, events = await admin.verdicts(), await admin.events()
    assert (len(ids(verdicts)), len(ids(events)) > 5) == (60, True)
    assert {json.loads(line)["event_id"] for line in tailed.stdout.splitlines()} == ids(verdicts) | ids(events)
    assert await disagreement(admin) == {}


async def test_s20_tokens_that_expire_while_a_worker_runs_are_renewed_and_no_record_is_lost(secured: Secured) -> None:
    admin = secured.deployment("admin")
    before, told = len(ids(await admin.verdicts())), 0
    with token_server(seconds=2.0) as provider:
        worker = secured.deployment(
            "nearstream", **BEARER | {"kafka_token_url": provider.url, "kafka_token_form": "scope=a+b"}
        )
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
        assert process.returncode == 0
    assert provider.asked[0] == {"grant_type": ["client_credentials"], "scope": ["a b"]}
    assert len(ids(await admin.verdicts())) == before + told
    assert await disagreement(admin) == {}


async def test_a_token_from_a_file_is_read_again_for_every_connection(secured: Secured, tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text(bearer("nearstream", 60) + "\n")
    reader = secured.deployment(
        "nearstream", **BEARER, kafka_username="", kafka_password="", kafka_token_path=str(path)
    ).settings
    provider = tokens(reader)
    assert provider is not None
    first = await provider.token()
    path.write_text(bearer("crawler", 60))
    assert (await provider.token(), first) == (path.read_text(), first)
    assert await kafka_offsets.end_offsets(reader, DOCUMENTS.name, 10.0)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("expired", "NEARSTREAM_KAFKA_SASL_MECHANISM: the broker refuses the token: .*invalid_token"),
        ("not a token", "NEARSTREAM_KAFKA_TOKEN_PATH: expected a file with a token"),
        ("", "NEARSTREAM_KAFKA_TOKEN_PATH: expected a readable file: No such file"),
        ("401", "NEARSTREAM_KAFKA_TOKEN_URL: the provider refuses a token: status 401, invalid_client"),
    ],
)
async def test_why_there_is_no_log_in_with_a_token_is_told(
    secured: Secured, tmp_path: Path, given: str, expected: str
) -> None:
    path = tmp_path / "token"
    if given:
        path.write_text(bearer("nearstream", -600) if given == "expired" else given)
    with token_server(seconds=60) as provider:
        from_file = {"kafka_username": "", "kafka_password": "", "kafka_token_path": str(path)}
        source = {"kafka_password": "wr0ng", "kafka_token_url": provider.url} if given == "401" else from_file
        with pytest.raises(SettingsError, match=expected):
            async with kafka_client.admin(secured.deployment("nearstream", **BEARER | source).settings, 10.0):
                pass
        provider.status = 503
        asked = {**BEARER, "kafka_token_url": provider.url}
        with pytest.raises(kafka_errors.KafkaUnreachableError, match=f"no token from {provider.url}: status 503"):
            async with kafka_client.admin(secured.deployment("nearstream", **asked).settings, 0.6):
                pass


async def test_s20_a_worker_that_only_signs_needs_few_rights_in_redis(secured: Secured) -> None:
    signer = secured.redis.settings(user="signer")["NEARSTREAM_REDIS"]
    with secured.deployment("nearstream", redis=signer).worker("sign"):
        await until(lambda: _logged(secured, "assigned: nearstream"))
    refused = secured.deployment("nearstream", redis=signer).run("worker", "match")
    assert _refusal(refused).startswith("NEARSTREAM_REDIS: the server refuses us: ")


@asynccontextmanager
async def _serving(secured: Secured) -> AsyncIterator[aiohttp.ClientSession]:
    """Run `nearstream serve` as its own user for the block, and yield a client of it."""
    (port,) = free_ports(1)
    redis = secured.redis.settings(user="api")["NEARSTREAM_REDIS"]
    deployment = secured.deployment(
        "api", redis=redis, api=f"127.0.0.1:{port}", api_seconds="60", label_delay_seconds="0"
    )
    log = secured.logs / "api.log"
    with command(log, "serve", "--since", "1h", **deployment.given()):
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


async def test_the_documented_rights_suffice_for_all_that_the_api_does(secured: Secured) -> None:
    worker, name = secured.deployment("nearstream"), "<1@a.example>"
    with worker.worker():
        await until(lambda: _has_index(worker))
        async with _serving(secured) as session:
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
            async with session.get("/readyz") as response:
                assert response.status == 200
            await _accepted(session, "DELETE", f"/v1/documents/default/{quote(name, safe='')}")
            await worker.drained()
            assert (await _check(session, NEAR))["verdict"] == "none"
    log = (secured.logs / "api.log").read_text()
    assert "permission" not in log


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


async def _has_index(worker: LocalDeployment) -> bool:
    """Return whether the worker has made the index."""
    done = await asyncio.to_thread(worker.run, "doctor")
    return b"index     ready" in done.stdout


async def _shows(session: aiohttp.ClientSession, name: str) -> bool:
    """Return whether the live page has a document with its verdict, which came through Kafka, and its states."""
    async with session.get("/v1/document", params={"id": name}) as response:
        shown = await response.json()
    return response.status == 200 and bool(shown["verdict"] and shown["states"])


async def test_s20_f24_least_rights_suffice_and_a_missing_one_is_named(secured: Secured) -> None:
    right = "--operation Write --topic nearstream.dead-letters.v1"
    worker, admin = secured.deployment("nearstream"), secured.deployment("admin")
    with worker.worker() as process:
        await until(lambda: _logged(secured, "assigned: nearstream"))
        await admin.drained()
        before = await _committed(admin)
        secured.kafka.acls([f"{ACLS} --remove --force --allow-principal User:nearstream {right}"])
        await admin.send([ProducerRecord(DOCUMENTS.name, b"k", b"\xff", [])])
        assert await asyncio.to_thread(process.wait, 60) == Exit.MISCONFIGURED
    assert await _logged(secured, f"nearstream: topic {DEAD_LETTERS.name}: permission WRITE is missing\n")
    assert await _committed(admin) == before
    again = worker.run("worker")
    assert _refusal(again) == f"NEARSTREAM_KAFKA_USERNAME: missing permissions: WRITE on topic {DEAD_LETTERS.name}"
    told = secured.deployment("onlooker").run("worker", "sign")
    assert _refusal(told).startswith(
        "NEARSTREAM_KAFKA_USERNAME: missing permissions: READ on group nearstream, "
        "READ on topic nearstream.documents.v1, WRITE on topic nearstream.signatures.v1, "
        "WRITE on topic nearstream.dead-letters.v1"
    )
    refused = secured.deployment("dashboard").run("produce", "-", given=LINES[0])
    assert _refusal(refused) == f"topic {DOCUMENTS.name}: permission DESCRIBE is missing"


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


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({"kafka_password": "wrong"}, "NEARSTREAM_KAFKA_USERNAME, NEARSTREAM_KAFKA_PASSWORD: refused by the broker"),
        ({"kafka_sasl_mechanism": "SCRAM-SHA-256"}, "NEARSTREAM_KAFKA_SASL_MECHANISM: SCRAM-SHA-256 is refused"),
        ({"kafka_ca_path": ""}, "NEARSTREAM_KAFKA_CA_PATH: the broker's certificate is not accepted: "),
        ({"kafka": "localhost"}, "NEARSTREAM_KAFKA_CA_PATH: .*Hostname mismatch.*(broker localhost:[0-9]+)"),
        ({"kafka": "plain", "kafka_security": "SASL_PLAINTEXT", "kafka_ca_path": ""}, "NEARSTREAM_KAFKA_SECURITY: "),
    ],
)
async def test_what_kafka_does_not_accept_is_named(secured: Secured, changed: dict[str, str], expected: str) -> None:
    if "kafka" in changed:
        plain = secured.kafka.server.address
        others = {"localhost": secured.kafka.address.replace("127.0.0.1", "localhost"), "plain": plain}
        changed = {**changed, "kafka": others[changed["kafka"]]}
    with pytest.raises(SettingsError, match=expected):
        async with kafka_client.admin(secured.deployment("nearstream", **changed).settings, 10.0):
            pass


@pytest.mark.parametrize("is_plain", [False, True])
async def test_another_protocol_than_the_brokers_is_a_guess_that_is_told(secured: Secured, is_plain: bool) -> None:
    unset = dict.fromkeys(("kafka_security", "kafka_username", "kafka_password", "kafka_ca_path"), "")
    changed = {"kafka": secured.kafka.server.address} if is_plain else unset
    with pytest.raises(kafka_errors.KafkaUnreachableError, match=r"is NEARSTREAM_KAFKA_SECURITY=[A-Z_]+ right\?"):
        async with kafka_client.admin(secured.deployment("nearstream", **changed).settings, 0.6):
            pass


async def test_the_mechanism_plain_is_understood_too(secured: Secured) -> None:
    settings = secured.deployment("nearstream", kafka_sasl_mechanism="PLAIN").settings
    assert await kafka_offsets.end_offsets(settings, DOCUMENTS.name, 10.0)


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({"redis_ca_path": ""}, "NEARSTREAM_REDIS_CA_PATH: the server's certificate is not accepted: "),
        ({"redis": "localhost"}, "NEARSTREAM_REDIS_CA_PATH: .*Hostname mismatch"),
        ({"redis_ca_path": str(EXAMPLES / "documents.jsonl")}, "NEARSTREAM_REDIS_CA_PATH: expected a PEM file"),
        ({"redis": "wrong"}, "NEARSTREAM_REDIS: the server refuses us: .*password"),
        ({"namespace": "other"}, "NEARSTREAM_REDIS: the server refuses us: .*o permissions"),
    ],
)
async def test_what_redis_does_not_accept_is_named(secured: Secured, changed: dict[str, str], expected: str) -> None:
    if "redis" in changed:
        url = secured.redis.settings()["NEARSTREAM_REDIS"]
        changed = {"redis": url.replace("127.0.0.1", "localhost")}
        if expected.endswith("password"):
            changed = {"redis": secured.redis.settings("wrong")["NEARSTREAM_REDIS"]}
    settings = secured.deployment("nearstream", **changed).settings
    with pytest.raises(SettingsError, match=expected):
        await _opened(Deployment.of(settings))


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
