"""The status port: what it tells, to whom."""

import http.client
import json
import socket
from time import monotonic

import pytest

from workers.health import Health
from workers.kafka_lag import PartitionLag
from workers.settings import Settings, SettingsError
from workers.status import AT_ONCE, serve_status

TOKEN = "a token of 20 letters"  # noqa: S105 - opens nothing


def _get(address: str, path: str, **headers: str) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection(address, timeout=10)
    connection.request("GET", path, headers=headers)
    answer = connection.getresponse()
    body = answer.read()
    connection.close()
    return answer.status, body


def test_readiness_follows_the_health() -> None:
    health = Health(assigned=frozenset())
    address = serve_status("127.0.0.1:0", health, "")
    assert _get(address, "/readyz") == (200, b'{"ready": true, "why": ""}\n')
    with health.outage("no Redis"):
        code, body = _get(address, "/readyz")
    assert (code, json.loads(body)["ready"]) == (503, False)
    assert _get(address, "/readyz")[0] == 200


def test_a_loop_without_turns_is_unhealthy() -> None:
    health = Health()
    address = serve_status("127.0.0.1:0", health, "")
    assert _get(address, "/healthz")[0] == 200
    health.ticked = monotonic() - 61
    assert _get(address, "/healthz") == (503, b'{"healthy": false}\n')
    health.ticked = monotonic()
    assert _get(address, "/healthz")[0] == 200


def test_lag_is_told_by_partition() -> None:
    health = Health(lags=(PartitionLag("documents", 3, 5, 0, 12, 1.5),))
    code, body = _get(serve_status("127.0.0.1:0", health, ""), "/lag")
    assert code == 200
    assert json.loads(body) == [
        {"topic": "documents", "partition": 3, "committed": 5, "end": 12, "records": 7, "seconds": 1.5}
    ]


def test_metrics_are_in_the_text_form_of_prometheus() -> None:
    code, body = _get(serve_status("127.0.0.1:0", Health(), ""), "/metrics")
    assert code == 200
    assert b"# TYPE nearstream_documents_total counter" in body


def test_s02_a_wrong_token_is_401_and_probes_need_none() -> None:
    address = serve_status("127.0.0.1:0", Health(assigned=frozenset()), TOKEN)
    assert _get(address, "/metrics")[0] == 401
    assert _get(address, "/lag", Authorization="Bearer another token of 20")[0] == 401
    assert _get(address, "/lag", Authorization="Bearer \xe9")[0] == 401
    assert _get(address, "/lag", Authorization=f"Bearer {TOKEN}")[0] == 200
    assert _get(address, "/readyz")[0] == _get(address, "/healthz")[0] == 200


def test_other_paths_and_methods_are_refused() -> None:
    address = serve_status("127.0.0.1:0", Health(), "")
    assert _get(address, "/")[0] == 404
    connection = http.client.HTTPConnection(address, timeout=10)
    connection.request("POST", "/metrics", body=b"x")
    assert connection.getresponse().status == 501


def test_a_probe_may_ask_for_the_head_alone() -> None:
    address = serve_status("127.0.0.1:0", Health(assigned=frozenset()), "")
    connection = http.client.HTTPConnection(address, timeout=10)
    connection.request("HEAD", "/readyz")
    answer = connection.getresponse()
    assert (answer.status, answer.read()) == (200, b"")


def test_silent_readers_do_not_shut_others_out_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("workers.status._READ_SECONDS", 0.2)
    address = serve_status("127.0.0.1:0", Health(assigned=frozenset()), "")
    host, port = address.split(":")
    silent = [socket.create_connection((host, int(port))) for _ in range(AT_ONCE + 4)]
    deadline = monotonic() + 10
    while True:
        try:
            assert _get(address, "/readyz")[0] == 200
        except (ConnectionError, http.client.HTTPException):
            assert monotonic() < deadline
        else:
            break
    for connection in silent:
        connection.close()


def test_a_taken_port_is_refused_unless_nobody_asked_for_it() -> None:
    taken = serve_status("127.0.0.1:0", Health(), "")
    with pytest.raises(SettingsError, match=f"NEARSTREAM_STATUS: {taken} cannot be served"):
        serve_status(taken, Health(), "")
    first, second = (serve_status(Settings.status, Health(), "") for _ in range(2))
    assert first != second
