"""The status port: what it reports, and to which clients."""

import http.client
from dataclasses import replace
from time import monotonic

import pytest

from nearstream.workers.config.settings import AUTO, Settings, SettingsError
from nearstream.workers.http.requests import Gate
from nearstream.workers.http.status import serve_status
from nearstream.workers.monitoring.health import Health
from tests.devstack.server import free_ports

TOKEN = "a-token-of-20-letters"  # noqa: S105 - opens nothing


def _served(health: Health, token: str = "", at: str = "127.0.0.1:0") -> str:
    return serve_status(replace(Settings(), status=at), health, Gate(token))


def _get(address: str, path: str, method: str = "GET", **headers: str) -> tuple[int, bytes, str | None]:
    connection = http.client.HTTPConnection(address, timeout=60)
    connection.request(method, path, headers=headers)
    answer = connection.getresponse()
    body = answer.read()
    connection.close()
    return answer.status, body, answer.headers["Allow"]


def test_a_loop_without_turns_is_unhealthy() -> None:
    health = Health()
    address = _served(health)
    assert _get(address, "/healthz")[0] == 200
    health.ticked = monotonic() - 61
    assert _get(address, "/healthz")[:2] == (503, b'{"healthy":false}')
    health.ticked = monotonic()
    assert _get(address, "/healthz")[0] == 200


def test_s02_a_wrong_token_is_401_and_probes_need_none() -> None:
    address = _served(Health(assigned=frozenset()), TOKEN)
    assert _get(address, "/metrics")[0] == 401
    assert _get(address, "/lag", Authorization="Bearer another-token-of-20")[0] == 401
    assert _get(address, "/lag", Authorization="Bearer \xe9")[0] == 401
    assert _get(address, "/lag", Authorization=f"Bearer {TOKEN}")[:2] == (200, b"[]")
    assert _get(address, "/readyz", Host="worker-1.example")[0] == _get(address, "/healthz")[0] == 200


def test_no_path_is_answered_under_a_foreign_name() -> None:
    address = _served(Health(assigned=frozenset()))
    for path in ("/metrics", "/lag", "/healthz", "/readyz", "/other"):
        assert _get(address, path, Host="evil.example")[0] == 403
        assert _get(address, path, Host="localhost:1")[0] != 403


def test_a_probe_may_ask_for_the_head_alone_and_other_paths_and_methods_are_refused() -> None:
    address = _served(Health(assigned=frozenset()))
    assert _get(address, "/readyz", "HEAD")[:2] == (200, b"")
    assert _get(address, "/")[:2] == (
        404,
        b'{"error":"not_found","detail":"expected /metrics, /healthz, /readyz or /lag"}',
    )
    status, _, allowed = _get(address, "/metrics", "POST")
    assert (status, allowed) == (405, "GET,HEAD")


def test_the_default_address_alone_is_replaced_where_it_is_taken() -> None:
    taken = _served(Health())
    with pytest.raises(SettingsError, match=f"NEARSTREAM_STATUS: cannot listen on {taken}: .*ddress already in use"):
        _served(Health(), at=taken)
    assert serve_status(Settings(), Health(), Gate(""), taken) != taken
    free = f"127.0.0.1:{free_ports(1)[0]}"
    assert serve_status(Settings(), Health(), Gate(""), free) == free
    assert (Settings().status, _served(Health(), at="off")) == (AUTO, "")
