"""Kafka and Redis behind TLS, passwords and ACLs: the documented rights suffice, what is wrong is named."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.integration.deployment import Deployment
from tests.integration.secured import SecuredKafka, SecuredRedis, documented, secured_kafka, secured_redis
from workers.demo import EXAMPLES
from workers.settings import load

USERS = ("nearstream", "crawler", "dashboard", "operator", "nobody")
LINES = (EXAMPLES / "documents.jsonl").read_bytes().splitlines()
NOT_DOCUMENTED = "User:{} --operation {} --topic {}"


@dataclass(frozen=True)
class Secured:
    """Both servers, with the topics of a deployment.

    Attributes:
        kafka: With the documented ACLs.
        redis: With the documented user.
        logs: Folder for the logs of workers.
    """

    kafka: SecuredKafka
    redis: SecuredRedis
    logs: Path

    def deployment(self, user: str, **changed: str) -> Deployment:
        """What this user sees; an empty value unsets a variable."""
        changed = {f"NEARSTREAM_{name.upper()}": value for name, value in changed.items()}
        given = {**self.kafka.settings(user), **self.redis.settings(), "NEARSTREAM_STATUS": "off", **changed}
        given = {name: value for name, value in given.items() if value}
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("NEARSTREAM_")}
        return Deployment(load(given), {**inherited, **given}, self.logs)


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    folder = tmp_path_factory.mktemp("secured")
    with secured_redis(folder / "redis") as redis, secured_kafka(folder / "kafka", USERS) as kafka:
        made = Secured(kafka, redis, folder)
        kafka.acls(documented("operations.md", "kafka-acls.sh"))
        assert made.deployment("operator").run("topics", "create").returncode == 0
        yield made


async def test_sasl_ssl_works_end_to_end(secured: Secured) -> None:
    """S20: documents in, events out, each command by the user that may do no more than it must."""
    produced = secured.deployment("crawler").run("produce", "-", given=b"\n".join([*LINES, b'{"id":"x"}']))
    assert b"sent" in produced.stderr
    worker = secured.deployment("nearstream")
    with worker.worker():
        await worker.drained()
    tailed = secured.deployment("dashboard").run("tail", "--from-start", "--until-end")
    assert tailed.returncode == 0
    assert len(tailed.stdout.splitlines()) > 100
