"""Servers that require TLS and passwords, with certificates of a CA made for the test."""

import os
import re
import shlex
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from nearstream.schemas.topics.table import ALL
from nearstream.workers.config.settings import load
from tests.devstack.kafka import choose_ports, kafka_server, tool
from tests.devstack.redis import redis_server
from tests.devstack.server import LocalServer, run_to_end, running
from tests.fault.proxy import proxied
from tests.support.deployment import LocalDeployment

ROOT = Path(__file__).parent.parent.parent
KAFKA_ACLS = "kafka-acls.sh"
_KEY = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"]
_ISSUING = ["-addext", "keyUsage=critical,keyCertSign,digitalSignature"]  # which Python 3.13 asks for


def authority(folder: Path) -> Path:
    """Create a CA whose files are in this new folder, and return its certificate, which clients trust."""
    folder.mkdir(parents=True)
    certificate = folder / "ca.pem"
    names = ["-subj", "/CN=test CA", *_ISSUING]
    _openssl([*_KEY, *names, "-keyout", str(folder / "ca.key"), "-out", str(certificate)])
    return certificate


def issued(ca: Path, name: str, alternative: str) -> tuple[Path, Path]:
    """Let a CA issue a certificate and a private key for a server, e.g. for `IP:127.0.0.1`."""
    certificate, key = ca.with_name(f"{name}.pem"), ca.with_name(f"{name}.key")
    signed = ["-CA", str(ca), "-CAkey", str(ca.with_name("ca.key"))]
    names = ["-subj", f"/CN={name}", "-addext", f"subjectAltName={alternative}", *_ISSUING]
    _openssl([*_KEY, *signed, *names, "-keyout", str(key), "-out", str(certificate)])
    return certificate, key


def _openssl(arguments: Sequence[str]) -> None:
    run_to_end(["openssl", "req", "-x509", *arguments], purpose="making a certificate")


@dataclass(frozen=True)
class SecuredKafka:
    """A broker with SASL_SSL and ACLs."""

    address: str  # its listener that requires TLS and a password
    ca_path: Path  # what its certificate is checked by
    server: LocalServer  # The process. Its own address serves without TLS, and clients there are the superuser.

    def settings(self, user: str) -> dict[str, str]:
        """Return the settings of a client that connects as this user."""
        return {
            "NEARSTREAM_KAFKA": self.address,
            "NEARSTREAM_KAFKA_SECURITY": "SASL_SSL",
            "NEARSTREAM_KAFKA_USERNAME": user,
            "NEARSTREAM_KAFKA_PASSWORD": password(user),
            "NEARSTREAM_KAFKA_CA_PATH": str(self.ca_path),
        }

    def acls(self, commands: Sequence[str]) -> None:
        """Run commands, written as in a shell, each with Kafka's own tool."""
        with ThreadPoolExecutor(2) as workers:
            list(workers.map(self._acl, commands))

    def _acl(self, command: str) -> None:
        program, *arguments = shlex.split(command.replace("$BROKER", self.server.address))
        assert program == KAFKA_ACLS
        run_to_end([*tool("org.apache.kafka.tools.AclCommand"), *arguments], purpose=command)


def password(user: str) -> str:
    """Return the password of a user of the test broker."""
    return f"{user}-s3cret"


@contextmanager
def secured_kafka(folder: Path, users: Sequence[str]) -> Iterator[SecuredKafka]:
    """Run a broker with these users and `admin`, which has all permissions."""
    ca = authority(folder / "ca")
    certificate, key = issued(ca, "broker", "IP:127.0.0.1")
    both = folder / "broker.pem"
    both.write_text(key.read_text() + certificate.read_text())
    ports = choose_ports()
    users = [*users, "admin"]
    properties = f"""\
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,FAULT:SASL_SSL
listener.name.fault.ssl.keystore.type=PEM
listener.name.fault.ssl.keystore.location={both}
listener.name.fault.sasl.enabled.mechanisms=SCRAM-SHA-512,PLAIN,OAUTHBEARER
listener.name.fault.oauthbearer.sasl.jaas.config=\
org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required;
listener.name.fault.oauthbearer.connections.max.reauth.ms=60000
listener.name.fault.scram-sha-512.sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required;
listener.name.fault.plain.sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required \
{" ".join(f'user_{user}="{password(user)}"' for user in users)};
authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer
super.users=User:ANONYMOUS;User:admin
"""
    known = [f"SCRAM-SHA-512=[name={user},password={password(user)}]" for user in users]
    storage = [word for user in known for word in ("--add-scram", user)]
    server = kafka_server(folder / "kafka", ports, properties=properties, storage=storage)
    with running(server):
        yield SecuredKafka(f"127.0.0.1:{ports.fault}", ca, server)


def documented(path: str, program: str) -> list[str]:
    """Return the lines that begin with this word in a file of the repository."""
    text = (ROOT / path).read_text().replace("\\\n", " ")
    return re.findall(rf"^{re.escape(program)} .*$", text, re.MULTILINE)


@dataclass(frozen=True)
class SecuredRedis:
    """A Redis with TLS and a user with few permissions."""

    address: str  # its listener for TLS
    ca_path: Path  # what its certificate is checked by
    server: LocalServer  # The process behind it. Its own address serves any client without TLS.

    def settings(self, given: str = "", user: str = "nearstream") -> dict[str, str]:
        """Return the settings of a worker, with another password if one is given."""
        return {
            "NEARSTREAM_REDIS": f"rediss://{user}:{given or password(user)}@{self.address}/0",
            "NEARSTREAM_REDIS_CA_PATH": str(self.ca_path),
        }


@contextmanager
def secured_redis(folder: Path) -> Iterator[SecuredRedis]:
    """Run a server with the users of the pages about operations and the API."""
    ca = authority(folder / "ca")
    options: list[str] = []
    for user, page in (("nearstream", "operations"), ("signer", "operations"), ("api", "api")):
        (line,) = documented(f"docs/{page}.md", f"user {user}")
        options += ["--user", *line.replace("PASSWORD", password(user)).split()[1:]]
    with running(redis_server(folder / "redis", options)) as server:
        # It was built without TLS.
        port = int(server.address.partition(":")[2])
        with proxied(port, certificate=issued(ca, "redis", "IP:127.0.0.1")) as front:
            yield SecuredRedis(f"127.0.0.1:{front.port}", ca, server)


@dataclass(frozen=True)
class Secured:
    """Both servers and the topics of a deployment."""

    kafka: SecuredKafka  # the broker, with the documented ACLs
    redis: SecuredRedis  # the server, with the documented users
    logs: Path  # the folder for the logs of workers

    def deployment(self, user: str, **changed: str) -> LocalDeployment:
        """Return the deployment for this user. An empty value unsets a variable."""
        changed = {f"NEARSTREAM_{name.upper()}": value for name, value in changed.items()}
        given = {**self.kafka.settings(user), **self.redis.settings(), "NEARSTREAM_STATUS": "off", **changed}
        given = {name: value for name, value in given.items() if value}
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("NEARSTREAM_")}
        return LocalDeployment(load(given), {**inherited, **given}, self.logs)


@contextmanager
def secured_servers(folder: Path, users: Sequence[str]) -> Iterator[Secured]:
    """Run both servers for these users of Kafka, and create the topics with the documented rights."""
    with secured_redis(folder / "redis") as redis, secured_kafka(folder / "kafka", [*users, "operator"]) as kafka:
        made = Secured(kafka, redis, folder)
        kafka.acls(documented("deploy/kafka-rights.sh", KAFKA_ACLS))
        created = made.deployment("operator").run("topics", "create")
        assert (created.returncode, created.stderr.count(b"created")) == (0, len(ALL))
        yield made
