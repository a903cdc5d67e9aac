"""Settings and files for secure connections to Kafka and Redis."""

import ssl
import subprocess
from base64 import urlsafe_b64decode
from contextlib import suppress
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from faust.transport.drivers.aiokafka import credentials_to_aiokafka_auth

from nearstream.workers.config.settings import PREFIX, Settings, SettingsError, load
from nearstream.workers.config.tls import in_the_clear, trusting
from nearstream.workers.kafka.security import client_options, tls_context, tokens
from nearstream.workers.monitoring.health import Health
from nearstream.workers.worker.topology import create_app
from tests.support.secured import authority, issued

URL = "https://idp.example/token"
SASL = {"kafka_security": "SASL_SSL", "kafka_username": "u", "kafka_password": "p"}
PASSWORD = "correct-horse"  # noqa: S105 - a made-up one


def bearer(**source: str) -> dict[str, str]:
    """Return the settings of a log-in with tokens from this source."""
    names = {f"kafka_token_{name}": value for name, value in source.items()}
    return {"kafka_security": "SASL_SSL", "kafka_sasl_mechanism": "OAUTHBEARER"} | names


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
    ca = authority(folder / "ca")
    certificate, key = issued(ca, "client", "DNS:client")
    locked = folder / "locked.key"
    lock = ["openssl", "pkcs8", "-topk8", "-in", str(key), "-out", str(locked), "-passout", f"pass:{PASSWORD}"]
    subprocess.run(lock, check=True)
    text = folder / "text"
    text.write_text("no PEM")
    paths = {"ca": ca, "certificate": certificate, "key": key, "locked": locked, "text": text}
    return {name: str(path) for name, path in paths.items()}


SSL = {"kafka_security": "SSL"}
UNUSED = "NEARSTREAM_KAFKA_SECURITY=PLAINTEXT does not use it"


@pytest.mark.parametrize(
    ("given", "name", "why"),
    [
        (bearer(), "kafka_sasl_mechanism", "OAUTHBEARER requires one of NEARSTREAM_KAFKA_TOKEN_PATH, "),
        (bearer(path="/t", url=URL), "kafka_sasl_mechanism", "OAUTHBEARER requires one of "),
        (bearer(url=URL), "kafka_username", "NEARSTREAM_KAFKA_TOKEN_URL requires it"),
        (bearer(path="/t", form="a=b"), "kafka_token_form", "requires NEARSTREAM_KAFKA_TOKEN_URL"),
        (bearer(url="http://idp.example/token"), "kafka_token_url", "expected https://"),
        (bearer(url=f"https://u:{PASSWORD}@idp.example/"), "kafka_token_url", "expected https://"),
        (bearer(path="eyJhbGciOiJub25lIn0.e30."), "kafka_token_path", "expected the path of a file with a token"),
        (bearer(path="/t", extensions="logicalCluster"), "kafka_token_extensions", "expected name=value"),
        (SASL | {"kafka_token_path": "/t"}, "kafka_token_path", "NEARSTREAM_KAFKA_SASL_MECHANISM=SCRAM-SHA-512 does "),
        ({**SASL, "kafka_username": ""}, "kafka_username", "NEARSTREAM_KAFKA_SECURITY=SASL_SSL requires it"),
        ({**SASL, "kafka_password": ""}, "kafka_password", "NEARSTREAM_KAFKA_SECURITY=SASL_SSL requires it"),
        (SASL | {"kafka_key_path": PASSWORD}, "kafka_key_path", "requires NEARSTREAM_KAFKA_CERT_PATH"),
        (SSL | {"kafka_key_password": PASSWORD}, "kafka_key_password", "requires NEARSTREAM_KAFKA_CERT_PATH"),
        (SSL | {"kafka_password": PASSWORD}, "kafka_password", "NEARSTREAM_KAFKA_SECURITY=SSL does not use it"),
        *(
            ({name: PASSWORD}, name, UNUSED)
            for name in ("kafka_username", "kafka_ca_path", "kafka_cert_path", "kafka_key_password")
        ),
        ({"redis": "redis+sentinel://s1:1"}, "redis", "expected redis://"),
        ({"redis_ca_path": "/ca.pem"}, "redis_ca_path", "requires rediss:// in NEARSTREAM_REDIS"),
        *(
            ({"redis": f"rediss://h:6379/0?{option}"}, "redis", "expected no options but username")
            for option in (
                "ssl_cert_reqs=none",
                "username=a&ssl_check_hostname=false",
                "ssl%5Fca_certs=/x",
                "decode_responses=1",
                "a=",
            )
        ),
    ],
)
def test_settings_that_do_not_fit_are_refused_and_not_quoted(given: dict[str, str], name: str, why: str) -> None:
    told = refusal(**given)
    assert told.startswith(f"{PREFIX}{name.upper()}: {why}")
    assert PASSWORD not in told


async def test_a_token_comes_with_its_extensions(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("abc")
    options = client_options(loaded(**bearer(path=str(tmp_path / "token"), extensions="a=b c=d")))
    provider = options["sasl_oauth_token_provider"]
    assert (await provider.token(), provider.extensions()) == ("abc", {"a": "b", "c": "d"})
    assert (options["security_protocol"], options["sasl_mechanism"]) == ("SASL_SSL", "OAUTHBEARER")


async def test_tokens_for_amazon_msk_are_signed_by_the_credentials_of_the_machine(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "made-up")
    provider = tokens(loaded(**bearer(), kafka_msk_region="eu-west-1"))
    assert provider is not None
    token = await provider.token()
    asked = urlsplit(urlsafe_b64decode(token + "==").decode())
    assert asked.netloc == "kafka.eu-west-1.amazonaws.com"
    assert parse_qs(asked.query)["Action"] == ["kafka-cluster:Connect"]
    assert await provider.token() == token  # valid for 15 minutes, so the next connection gets it too


@pytest.mark.parametrize("name", ["kafka_ca_path", "kafka_cert_path", "kafka_key_path"])
def test_a_file_that_is_missing_or_no_pem_is_named(name: str, pem: dict[str, str]) -> None:
    given = {"kafka_security": "SSL", "kafka_cert_path": pem["certificate"]}
    missing = refusal(**given | {name: "/missing.pem"})
    assert missing.startswith(f"{PREFIX}{name.upper()}: expected a readable PEM file")
    assert "/missing.pem" in missing
    assert refusal(**given | {name: pem["text"]}).startswith(f"{PREFIX}{name.upper()}: expected a PEM file")
    a_key = refusal(kafka_security="SSL", kafka_ca_path=pem["key"])
    assert a_key.startswith("NEARSTREAM_KAFKA_CA_PATH: expected certificates")


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


def test_without_a_file_the_certificates_of_the_system_are_trusted() -> None:
    context = trusting("X", "")
    assert context.verify_mode is ssl.CERT_REQUIRED
    assert context.cert_store_stats() == ssl.create_default_context().cert_store_stats()


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


def test_faust_logs_in_with_each_mechanism_as_all_other_clients_do() -> None:
    for given in ({}, SASL | {"kafka_sasl_mechanism": "PLAIN"}, SASL | {"kafka_security": "SASL_PLAINTEXT"}):
        settings = loaded(**given)
        app = create_app(settings, Health(), None, None, None)
        options = client_options(settings)
        shown = credentials_to_aiokafka_auth(app.conf.broker_credentials, app.conf.ssl_context)
        log_in = {name: value for name, value in shown.items() if name != "ssl_context"}
        assert log_in.items() <= options.items()
        assert ("sasl_mechanism" in log_in) is ("sasl_mechanism" in options)


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
