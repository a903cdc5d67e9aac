"""The status port: what it reports, and to which clients."""

import http.client
import re
import socket
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from threading import Event, Thread
from threading import enumerate as enumerate_threads
from time import monotonic, sleep

import pytest

from nearstream.workers.config.settings import Settings, SettingsError
from nearstream.workers.kafka.lag import PartitionLag
from nearstream.workers.monitoring.health import Health
from nearstream.workers.monitoring.status_server import AT_ONCE, serve_status
from tests.devstack.server import free_ports

TOKEN = "a token of 20 letters"  # noqa: S105 - opens nothing


def _get(address: str, path: str, **headers: str) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection(address, timeout=60)
    connection.request("GET", path, headers=headers)
    answer = connection.getresponse()
    body = answer.read()
    connection.close()
    return answer.status, body


def test_a_loop_without_turns_is_unhealthy() -> None:
    health = Health()
    address = serve_status("127.0.0.1:0", health, "").address
    assert _get(address, "/healthz")[0] == 200
    health.ticked = monotonic() - 61
    assert _get(address, "/healthz") == (503, b'{"healthy": false}\n')
    health.ticked = monotonic()
    assert _get(address, "/healthz")[0] == 200


def test_s02_a_wrong_token_is_401_and_probes_need_none() -> None:
    address = serve_status("127.0.0.1:0", Health(assigned=frozenset()), TOKEN).address
    assert _get(address, "/metrics")[0] == 401
    assert _get(address, "/lag", Authorization="Bearer another token of 20")[0] == 401
    assert _get(address, "/lag", Authorization="Bearer \xe9")[0] == 401
    assert _get(address, "/lag", Authorization=f"Bearer {TOKEN}")[0] == 200
    assert _get(address, "/readyz")[0] == _get(address, "/healthz")[0] == 200


def test_no_path_is_answered_under_a_foreign_name() -> None:
    address = serve_status("127.0.0.1:0", Health(assigned=frozenset()), "").address
    for path in ("/metrics", "/lag", "/healthz", "/readyz", "/other"):
        assert _get(address, path, Host="evil.example")[0] == 403
        assert _get(address, path, Host="localhost:1")[0] != 403
    guarded = serve_status("127.0.0.1:0", Health(assigned=frozenset()), TOKEN).address
    assert _get(guarded, "/readyz", Host="worker-1.example")[0] == 200


def test_a_probe_may_ask_for_the_head_alone_and_other_paths_and_methods_are_refused() -> None:
    address = serve_status("127.0.0.1:0", Health(assigned=frozenset()), "").address
    for method, path, status, body in (
        ("HEAD", "/readyz", 200, b""),
        ("GET", "/", 404, b'{"paths": ["/healthz", "/lag", "/metrics", "/readyz"]}\n'),
        ("POST", "/metrics", 405, b"405 Method Not Allowed\n"),
    ):
        connection = http.client.HTTPConnection(address, timeout=60)
        connection.request(method, path, body=b"x" if method == "POST" else None)
        answer = connection.getresponse()
        assert (answer.status, answer.read()) == (status, body)
        assert status != 405 or answer.headers["Allow"] == "GET, HEAD"


@pytest.mark.parametrize("line", [b"<script>", b"GET / HTTP/9.9", b"<b> / HTTP/1.1", b"GET /" + b"x" * 70_000])
def test_s03_no_refusal_quotes_the_request_however_large_it_is(line: bytes) -> None:
    host, port = serve_status("127.0.0.1:0", Health(), "").address.split(":")
    with socket.create_connection((host, int(port)), timeout=60) as connection:
        connection.sendall(line + b"\r\n\r\n")
        answer = b"".join(iter(lambda: connection.recv(4096), b""))
    assert re.match(rb"HTTP/1.\d (400|405|414|505) .*\n\Z", answer, re.DOTALL)
    assert b"<" not in answer


def test_s03_clients_that_send_a_byte_now_and_then_do_not_shut_others_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nearstream.workers.monitoring.status_server._REQUEST_SECONDS", 0.5)
    address = serve_status("127.0.0.1:0", Health(assigned=frozenset()), "").address
    host, port = address.split(":")
    with ExitStack() as stack:
        slow = [stack.enter_context(socket.create_connection((host, int(port)))) for _ in range(AT_ONCE + 4)]
        done = Event()
        sender = Thread(target=_send_slowly, args=(slow, done))
        sender.start()
        stack.callback(sender.join)
        stack.callback(done.set)
        deadline = monotonic() + 60
        while not _is_ready(address):
            assert monotonic() < deadline
        assert all(_is_ended(connection) for connection in slow)


def _send_slowly(connections: Sequence[socket.socket], done: Event) -> None:
    while not done.wait(0.1):
        for connection in connections:
            with suppress(OSError):
                connection.send(b"G")


def _is_ready(address: str) -> bool:
    try:
        return _get(address, "/readyz")[0] == 200
    except (ConnectionError, http.client.HTTPException):
        return False


def _is_ended(connection: socket.socket) -> bool:
    connection.settimeout(60)
    try:
        return connection.recv(1) == b""
    except ConnectionError:
        return True


def test_s03_a_client_that_does_not_read_its_answer_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nearstream.workers.monitoring.status_server._REQUEST_SECONDS", 0.5)
    rows = tuple(PartitionLag("documents", number, 5, 0, 12, 1.5) for number in range(50_000))
    health = Health(lags=rows, assigned=frozenset((row.topic, row.partition) for row in rows))
    host, port = serve_status("127.0.0.1:0", health, "").address.split(":")
    with socket.create_connection((host, int(port))) as connection:
        connection.sendall(b"GET /lag HTTP/1.0\r\n\r\n")
        deadline = monotonic() + 60
        while any("process_request_thread" in thread.name for thread in enumerate_threads()):
            assert monotonic() < deadline
            sleep(0.05)


def test_the_default_address_alone_is_replaced_where_it_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    taken = serve_status("127.0.0.1:0", Health(), "").address
    monkeypatch.setattr("nearstream.workers.monitoring.status_server.DEFAULT_ADDRESS", taken)
    with pytest.raises(SettingsError, match=f"NEARSTREAM_STATUS: cannot listen on {taken}: Address already in use"):
        serve_status(taken, Health(), "")
    assert serve_status(Settings.status, Health(), "").address != taken
    free = f"127.0.0.1:{free_ports(1)[0]}"
    assert serve_status(Settings.status, Health(), "", free).address == free
