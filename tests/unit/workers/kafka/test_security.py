"""Settings and files for secure connections to Kafka and Redis."""

import ssl
import subprocess
from base64 import urlsafe_b64decode
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from faust.transport.drivers.aiokafka import credentials_to_aiokafka_auth

from nearstream.workers.config.settings import PREFIX, Settings, SettingsError, load
from nearstream.workers.config.tls import in_the_clear, trusting
from nearstream.workers.kafka import acls
from nearstream.workers.kafka.security import client_options, tls_context, tokens
from nearstream.workers.monitoring.health import Health
from nearstream.workers.pipeline.deployment import Deployment
from nearstream.workers.worker import composition as worker
from nearstream.workers.worker.topology import create_app
from tests.support.secured import authority

BEARER = {"kafka_security": "SASL_SSL", "kafka_sasl_mechanism": "OAUTHBEARER"}
URL = "https://idp.example/token"
SASL = {"kafka_security": "SASL_SSL", "kafka_username": "u", "kafka_password": "p"}
PASSWORD = "correct-horse"  # noqa: S105 - a made-up one


def loaded(**given: str) -> Settings:
    return load({PREFIX + name.upper(): value for name, value in given.items()})


def refusal(**given: str) -> str:
    """Return the line with which these settings are refused.

    This happens at the latest when a client is made.
    """
    with pytest.raises(SettingsError) as caught:
        client_options(loaded(**given))
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.fixture(scope="module")
def pem(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Return the paths of a CA, a certificate, its key, its encrypted key and a text.

    The password of the encrypted key is `PASSWORD`.
    """
    folder = tmp_path_factory.mktemp("pem")
    made = authority(folder / "ca")
    certificate, key = made.issue("client", "DNS:client")
    locked = folder / "locked.key"
    lock = ["openssl", "pkcs8", "-topk8", "-in", str(key), "-out", str(locked), "-passout", f"pass:{PASSWORD}"]
    subprocess.run(lock, check=True)
    text = folder / "text"
    text.write_text("no PEM")
    paths = {"ca": made.certificate, "certificate": certificate, "key": key, "locked": locked, "text": text}
    return {name: str(path) for name, path in paths.items()}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, "SASL_MECHANISM: OAUTHBEARER requires one of NEARSTREAM_KAFKA_TOKEN_PATH, "),
        ({"path": "/t", "url": URL}, "SASL_MECHANISM: OAUTHBEARER requires one of "),
        ({"url": URL}, "USERNAME: NEARSTREAM_KAFKA_TOKEN_URL requires it"),
        ({"path": "/t", "form": "a=b"}, "TOKEN_FORM: requires NEARSTREAM_KAFKA_TOKEN_URL"),
        ({"url": "http://idp.example/token"}, "TOKEN_URL: expected https://"),
        ({"url": "https://u:p@idp.example/token"}, "TOKEN_URL: expected https://"),
        ({"path": "eyJhbGciOiJub25lIn0.e30."}, "TOKEN_PATH: expected the path of a file with a token, not the token"),
        ({"path": "/t", "extensions": "logicalCluster"}, "TOKEN_EXTENSIONS: expected name=value"),
    ],
)
def test_what_a_log_in_with_tokens_lacks_is_named(given: dict[str, str], expected: str) -> None:
    settings = {f"kafka_token_{name}": text for name, text in given.items()}
    told = refusal(kafka_security="SASL_SSL", kafka_sasl_mechanism="OAUTHBEARER", **settings)
    assert told.startswith(f"{PREFIX}KAFKA_{expected}")


def test_a_token_that_would_not_be_used_is_refused() -> None:
    assert refusal(**SASL, kafka_token_path="/t") == (  # noqa: S106 - a path
        "NEARSTREAM_KAFKA_TOKEN_PATH: NEARSTREAM_KAFKA_SASL_MECHANISM=SCRAM-SHA-512 does not use it, "
        "expected OAUTHBEARER"
    )


async def test_faust_gets_tokens_as_all_other_clients_do(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("abc")
    source = {"kafka_token_path": str(tmp_path / "token"), "kafka_token_extensions": "a=b c=d"}
    settings = loaded(**BEARER | source)
    app = create_app(settings, Health(), None, None, None)
    shown = credentials_to_aiokafka_auth(app.conf.broker_credentials, app.conf.ssl_context)
    for options in (shown, app.producer._settings_auth(), client_options(settings)):
        provider = options["sasl_oauth_token_provider"]
        assert (await provider.token(), provider.extensions()) == ("abc", {"a": "b", "c": "d"})
        assert (options["security_protocol"], options["sasl_mechanism"]) == ("SASL_SSL", "OAUTHBEARER")


async def test_tokens_for_amazon_msk_are_signed_by_the_credentials_of_the_machine(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "made-up")
    provider = tokens(loaded(**BEARER, kafka_msk_region="eu-west-1"))
    assert provider is not None
    token = await provider.token()
    asked = urlsplit(urlsafe_b64decode(token + "==").decode())
    assert asked.netloc == "kafka.eu-west-1.amazonaws.com"
    assert parse_qs(asked.query)["Action"] == ["kafka-cluster:Connect"]
    assert await provider.token() == token  # valid for 15 minutes, so the next connection gets it too


@pytest.mark.parametrize(
    ("protocol", "given", "named", "why"),
    [
        ("SASL_SSL", {"kafka_password": PASSWORD}, "kafka_username", "SASL_SSL requires it"),
        ("SASL_PLAINTEXT", {"kafka_username": "u"}, "kafka_password", "SASL_PLAINTEXT requires it"),
        ("PLAINTEXT", {"kafka_username": PASSWORD}, "kafka_username", "PLAINTEXT does not use it"),
        ("SSL", {"kafka_password": PASSWORD}, "kafka_password", "SSL does not use it"),
        ("PLAINTEXT", {"kafka_ca_path": PASSWORD}, "kafka_ca_path", "PLAINTEXT does not use it"),
        ("PLAINTEXT", {"kafka_cert_path": PASSWORD}, "kafka_cert_path", "PLAINTEXT does not use it"),
        ("SASL_PLAINTEXT", SASL | {"kafka_key_path": PASSWORD}, "kafka_key_path", "SASL_PLAINTEXT does not use it"),
        ("PLAINTEXT", {"kafka_key_password": PASSWORD}, "kafka_key_password", "PLAINTEXT does not use it"),
    ],
)
def test_what_a_protocol_lacks_or_does_not_use_is_refused_and_not_quoted(
    protocol: str, given: dict[str, str], named: str, why: str
) -> None:
    told = refusal(**given | {"kafka_security": protocol})
    assert told.startswith(f"{PREFIX}{named.upper()}: NEARSTREAM_KAFKA_SECURITY={why}")
    assert PASSWORD not in told


@pytest.mark.parametrize("name", ["kafka_key_path", "kafka_key_password"])
def test_a_key_without_its_certificate_is_refused(name: str) -> None:
    told = refusal(**{"kafka_security": "SSL", name: "x"})
    assert told == f"{PREFIX}{name.upper()}: requires NEARSTREAM_KAFKA_CERT_PATH"


@pytest.mark.parametrize("name", ["kafka_ca_path", "kafka_cert_path", "kafka_key_path"])
def test_a_file_that_is_missing_or_no_pem_is_named(name: str, pem: dict[str, str]) -> None:
    given = {"kafka_security": "SSL", "kafka_cert_path": pem["certificate"]}
    missing = refusal(**given | {name: "/missing.pem"})
    assert missing.startswith(f"{PREFIX}{name.upper()}: expected a readable PEM file")
    assert "/missing.pem" in missing
    assert refusal(**given | {name: pem["text"]}).startswith(f"{PREFIX}{name.upper()}: expected a PEM file")


def test_a_key_among_the_certificates_to_trust_is_refused(pem: dict[str, str]) -> None:
    assert refusal(kafka_security="SSL", kafka_ca_path=pem["key"]).startswith(
        "NEARSTREAM_KAFKA_CA_PATH: expected certificates"
    )


def test_a_key_that_does_not_fit_or_open_is_refused_without_asking_the_terminal(pem: dict[str, str]) -> None:
    given = {"kafka_security": "SSL", "kafka_cert_path": pem["certificate"]}
    for wrong in (
        {"kafka_key_path": pem["ca"]},
        {"kafka_key_path": pem["locked"]},
        {"kafka_key_path": pem["locked"], "kafka_key_password": f"{PASSWORD}r"},
        {},
    ):
        told = refusal(**given | wrong)
        assert told.startswith("NEARSTREAM_KAFKA_CERT_PATH, NEARSTREAM_KAFKA_KEY_PATH, NEARSTREAM_KAFKA_KEY_PASSWORD: ")
        assert PASSWORD not in told
    right = loaded(**given, kafka_key_path=pem["locked"], kafka_key_password=PASSWORD)
    assert isinstance(tls_context(right), ssl.SSLContext)


@pytest.mark.parametrize("protocol", ["SSL", "SASL_SSL"])
def test_tls_always_checks_certificates_and_host_names(protocol: str, pem: dict[str, str]) -> None:
    given = SASL if protocol == "SASL_SSL" else {}
    context = client_options(loaded(**given | {"kafka_security": protocol, "kafka_ca_path": pem["ca"]}))["ssl_context"]
    assert context.verify_mode is ssl.CERT_REQUIRED
    assert context.check_hostname
    assert len(context.get_ca_certs()) == 1


def test_without_a_file_the_certificates_of_the_system_are_trusted() -> None:
    context = trusting("X", "")
    assert context.verify_mode is ssl.CERT_REQUIRED
    assert context.cert_store_stats() == ssl.create_default_context().cert_store_stats()


def test_a_client_is_given_what_the_protocol_needs_alone() -> None:
    assert client_options(loaded()) == {
        "bootstrap_servers": "127.0.0.1:9092",
        "security_protocol": "PLAINTEXT",
        "ssl_context": None,
    }
    options = client_options(loaded(**SASL, kafka_sasl_mechanism="PLAIN"))
    assert (options["sasl_mechanism"], options["sasl_plain_username"], options["sasl_plain_password"]) == (
        "PLAIN",
        "u",
        "p",
    )


def test_sentinels_are_asked_for_a_primary_by_name() -> None:
    assert refusal(redis="redis+sentinel://s1:1").startswith("NEARSTREAM_REDIS: expected redis://")


def test_certificates_for_redis_need_its_tls() -> None:
    assert refusal(redis_ca_path="/ca.pem") == "NEARSTREAM_REDIS_CA_PATH: requires rediss:// in NEARSTREAM_REDIS"


@pytest.mark.parametrize(
    "option",
    ["ssl_cert_reqs=none", "username=a&ssl_check_hostname=false", "ssl%5Fca_certs=/x", "decode_responses=1", "a="],
)
def test_no_option_of_the_redis_address_stops_the_check_of_certificates_or_alters_replies(option: str) -> None:
    assert refusal(redis=f"rediss://h:6379/0?{option}").startswith("NEARSTREAM_REDIS: expected no options but username")


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, []),
        ({"kafka": "localhost:9092,127.0.0.2:9092", "redis": "redis://u:p@localhost:6379"}, []),
        ({"kafka": "127.0.0.1:9092,b2:9092"}, ["NEARSTREAM_KAFKA"]),
        ({"kafka": "b1:9092", "kafka_security": "SSL", "redis": "rediss://r:6379"}, []),
        ({"kafka": "b1:9092", **SASL, "kafka_security": "SASL_PLAINTEXT"}, ["NEARSTREAM_KAFKA"]),
        ({"redis": "redis://u:p@10.0.0.1:6379/0"}, ["NEARSTREAM_REDIS"]),
        ({"redis": "redis+sentinel://u:p@127.0.0.1:1,127.0.0.2:1/a"}, []),
        ({"redis": "redis+sentinel://127.0.0.1:1,s2:1/a/0"}, ["NEARSTREAM_REDIS"]),
        ({"redis": "rediss+sentinel://s1:1,s2:1/a/0", "redis_ca_path": "/ca.pem"}, []),
    ],
)
def test_another_host_without_tls_is_noticed(given: dict[str, str], expected: list[str]) -> None:
    assert in_the_clear(loaded(**given)) == expected


@pytest.mark.parametrize(
    ("protocol", "mechanism"),
    [("PLAINTEXT", "PLAIN"), ("SSL", "PLAIN"), ("SASL_PLAINTEXT", "SCRAM-SHA-256"), ("SASL_SSL", "SCRAM-SHA-512")],
)
async def test_faust_shows_what_all_other_clients_show(protocol: str, mechanism: str) -> None:
    given = SASL if protocol.startswith("SASL") else {}
    settings = loaded(**given | {"kafka_security": protocol, "kafka_sasl_mechanism": mechanism})
    app = create_app(settings, Health(), None, None, None)
    expected = client_options(settings)
    del expected["bootstrap_servers"]
    of_consumer = credentials_to_aiokafka_auth(app.conf.broker_credentials, app.conf.ssl_context)
    for shown in (of_consumer, app.producer._settings_auth()):
        assert _without_identity(shown) == _without_identity(expected)


def _without_identity(options: Mapping[str, Any]) -> dict[str, Any]:
    """Replace the TLS context by what it checks, because each client has its own."""
    context = options.get("ssl_context")
    checks = None if context is None else (context.verify_mode, context.check_hostname)
    return {**options, "ssl_context": checks}


@pytest.mark.parametrize(
    ("role", "read", "written"),
    [
        ("sign", "documents", "signatures dead-letters"),
        (
            "match",
            "signatures",
            "signatures verdicts near-duplicates containments versions overlaps labels-changed dead-letters",
        ),
        (
            "all",
            "documents signatures",
            "signatures verdicts near-duplicates containments versions overlaps labels-changed dead-letters",
        ),
    ],
)
def test_a_role_needs_to_read_its_input_and_to_write_its_output(role: str, read: str, written: str) -> None:
    needed = acls.needed(loaded(topic_prefix="p.", group="g"), role)
    assert [str(right) for right in needed] == [
        "READ on group g",
        *(f"READ on topic p.nearstream.{name}.v1" for name in read.split()),
        *(f"WRITE on topic p.nearstream.{name}.v1" for name in written.split()),
    ]


def test_our_certificate_is_shown_and_the_servers_is_checked(pem: dict[str, str]) -> None:
    """A broker that requires client certificates is simulated with TLS in memory."""
    given = {"kafka_security": "SSL", "kafka_ca_path": pem["ca"], "kafka_cert_path": pem["certificate"]}
    client = tls_context(loaded(**given, kafka_key_path=pem["key"]))
    server = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=pem["ca"])
    server.verify_mode = ssl.CERT_REQUIRED
    server.load_cert_chain(pem["certificate"], pem["key"])
    assert client is not None
    shown = _handshake(client, server, "client").getpeercert()
    assert shown is not None
    assert shown["subject"] == ((("commonName", "client"),),)
    with pytest.raises(ssl.SSLCertVerificationError, match="Hostname mismatch"):
        _handshake(client, server, "other")


def _handshake(client: ssl.SSLContext, server: ssl.SSLContext, name: str) -> ssl.SSLObject:
    """Connect both sides in memory and return the server's side."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    ours = client.wrap_bio(to_client, to_server, server_hostname=name)
    theirs = server.wrap_bio(to_server, to_client, server_side=True)
    for side in (ours, theirs, ours, theirs):
        with suppress(ssl.SSLWantReadError):
            side.do_handshake()
    return theirs


def test_a_start_says_once_that_another_host_is_reached_in_the_clear(caplog: pytest.LogCaptureFixture) -> None:
    worker._log_start(Deployment.of(loaded(kafka="b1:9092,b2:9092", redis="redis://r:6379")), "all")
    worker._log_start(Deployment.of(loaded()), "all")
    told = [line.getMessage() for line in caplog.records if "without TLS" in line.getMessage()]
    assert [line.partition(":")[0] for line in told] == ["NEARSTREAM_KAFKA, NEARSTREAM_REDIS"]


@pytest.mark.parametrize(
    ("code", "operations", "bits"), [(0, 24, 24), (0, -(2**31), -1), (3, -(2**31), -1), (29, -(2**31), 0), (30, 24, 0)]
)
def test_a_broker_that_tells_no_rights_is_no_refusal(code: int, operations: int, bits: int) -> None:
    assert acls.allowed(code, operations) == bits
