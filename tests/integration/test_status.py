"""A running worker tells how it is: metrics, readiness, lag; no ids, no text."""

import asyncio
import http.client
import json
from pathlib import Path

from schemas.record import Outgoing
from schemas.topics import DOCUMENTS, SIGNATURES
from tests.integration.deployment import LINES, deployed, until
from workers.local_redis import redis_server
from workers.local_server import free_ports, running

COUNT = 60


async def test_readiness_follows_an_outage_of_an_idle_worker(kafka: str, tmp_path: Path) -> None:
    address = f"127.0.0.1:{free_ports(1)[0]}"
    with running(redis_server(tmp_path / "redis")) as redis:
        async with deployed(kafka, f"redis://{redis.address}/0", tmp_path, status=address) as deployment:
            with deployment.worker():
                await until(lambda: _answers(address, "/readyz", 200), 60)
                await asyncio.to_thread(redis.pause)
                await until(lambda: _answers(address, "/readyz", 503), 30)
                assert b"nearstream_degraded 1.0" in await _body(address, "/metrics")
                assert "Redis does not answer" in json.loads(await _body(address, "/readyz"))["why"]
                await asyncio.to_thread(redis.resume)
                await until(lambda: _answers(address, "/readyz", 200), 30)


async def test_s05_metrics_tell_what_was_done_without_ids(kafka: str, redis_url: str, tmp_path: Path) -> None:
    address = f"127.0.0.1:{free_ports(1)[0]}"
    async with deployed(kafka, redis_url, tmp_path, status=address) as deployment:
        topic = deployment.topic(DOCUMENTS)
        records = deployment.examples(LINES[:COUNT])
        records += [Outgoing(topic, b"bad", b"[]", []), Outgoing(topic, b"empty", b'{"id": "e", "text": " "}', [])]
        records += [Outgoing(topic, records[0].key, None, [])]
        with deployment.worker():
            await deployment.send(records)
            await deployment.drained()
            await until(lambda: _all_read(address, topic, len(records)), 30)
            told = (await _body(address, "/metrics")).decode()
        expected = {"signed": COUNT, "empty": 1, "dead_letter": 1, "removed": 1}
        for outcome, count in expected.items():
            assert f'nearstream_documents_total{{outcome="{outcome}"}} {count}.0' in told
        assert 'nearstream_dead_letters_total{reason="invalid_message"} 1.0' in told
        sent = [float(line.split()[-1]) for line in told.splitlines() if line.startswith("nearstream_events_total")]
        assert sum(sent) == len(await deployment.events())
        assert f"nearstream_end_to_end_seconds_count {len(await deployment.read(SIGNATURES.name))}.0" in told
        for line in LINES[:COUNT]:
            assert json.loads(line)["id"] not in told


async def _all_read(address: str, topic: str, count: int) -> bool:
    """Whether the lag that is told has reached the end."""
    rows = [row for row in json.loads(await _body(address, "/lag")) if row["topic"] == topic]
    return sum(row["end"] for row in rows) == count and not any(row["records"] for row in rows)


async def _answers(address: str, path: str, code: int) -> bool:
    try:
        return (await asyncio.to_thread(_get, address, path))[0] == code
    except OSError:
        return False


async def _body(address: str, path: str) -> bytes:
    return (await asyncio.to_thread(_get, address, path))[1]


def _get(address: str, path: str) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection(address, timeout=5)
    connection.request("GET", path)
    answer = connection.getresponse()
    body = answer.read()
    connection.close()
    return answer.status, body
