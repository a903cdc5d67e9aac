"""A running worker reports metrics, readiness and lag, but no ids or text."""

import asyncio
import http.client
import json
from pathlib import Path

from nearstream.schemas.documents.record import ProducerRecord
from nearstream.schemas.topics.table import DOCUMENTS, EVENT_TOPICS, SIGNATURES
from tests.devstack.redis import redis_server
from tests.devstack.server import free_ports, running
from tests.fault.agreement import disagreement
from tests.support.deployment import DOCUMENT_PARTITIONS, LINES, deployed, until

COUNT = 60


async def test_readiness_follows_an_outage_and_a_stop_amid_one_is_prompt_and_loses_nothing(
    kafka: str, tmp_path: Path
) -> None:
    address = f"127.0.0.1:{free_ports(1)[0]}"
    with running(redis_server(tmp_path / "redis")) as redis:
        async with deployed(kafka, f"redis://{redis.address}/0", tmp_path, status=address) as deployment:
            with deployment.worker() as worker:
                await until(lambda: _answers(address, "/readyz", 200))
                await asyncio.to_thread(redis.pause)
                await until(lambda: _answers(address, "/readyz", 503))
                assert b"nearstream_degraded 1.0" in await _body(address, "/metrics")
                assert "Redis does not answer" in json.loads(await _body(address, "/readyz"))["why"]
                await asyncio.to_thread(redis.resume)
                await until(lambda: _answers(address, "/readyz", 200))
                await deployment.send(deployment.examples(LINES[:40]))
                await deployment.drained()
                await asyncio.to_thread(redis.pause)
                await deployment.send(deployment.examples(LINES[40:60]))
                await until(lambda: _answers(address, "/readyz", 503))
                worker.terminate()
                assert await asyncio.to_thread(worker.wait, 30) == 0
            await asyncio.to_thread(redis.resume)
            with deployment.worker():
                await deployment.drained()
            assert await disagreement(deployment) == {}


async def test_s05_metrics_tell_what_was_done_without_ids_and_two_workers_export_each_partition_once(
    kafka: str, redis_url: str, tmp_path: Path
) -> None:
    addresses = [f"127.0.0.1:{port}" for port in free_ports(2)]
    async with deployed(kafka, redis_url, tmp_path) as deployment:
        topic, everything = deployment.topic(DOCUMENTS), DOCUMENT_PARTITIONS + SIGNATURES.partitions
        records = deployment.examples(LINES[:COUNT])
        records += [
            ProducerRecord(topic, b"bad", b"[]", []),
            ProducerRecord(topic, b"empty", b'{"id": "e", "text": " "}', []),
            ProducerRecord(topic, records[0].key, None, []),
        ]

        async def each_has_its_own() -> bool:
            rows = [await _lag(address) for address in addresses]
            return all(rows) and len(rows[0] | rows[1]) == sum(map(len, rows)) == everything

        with deployment.worker(NEARSTREAM_STATUS=addresses[0]):
            await deployment.send(records)
            await deployment.drained()
            await until(lambda: _all_read(addresses[0], topic, len(records)))
            told = (await _body(addresses[0], "/metrics")).decode()
            with deployment.worker(NEARSTREAM_STATUS=addresses[1]):
                await until(each_has_its_own)
                of_both = [(await _body(address, "/metrics")).decode() for address in addresses]
        assert sum(text.count("nearstream_consumer_lag_records{") for text in of_both) == everything
        expected = {"signed": COUNT, "empty": 1, "dead_letter": 1, "removed": 1}
        for outcome, count in expected.items():
            assert f'nearstream_documents_total{{outcome="{outcome}"}} {count}.0' in told
        assert 'nearstream_dead_letters_total{reason="invalid_message"} 1.0' in told
        sent = [float(line.split()[-1]) for line in told.splitlines() if line.startswith("nearstream_events_total")]
        assert sum(sent) == len(await deployment.read(*(topic.name for topic in EVENT_TOPICS)))
        assert f"nearstream_end_to_end_seconds_count {len(await deployment.read(SIGNATURES.name))}.0" in told
        for line in LINES[:COUNT]:
            assert json.loads(line)["id"] not in told


async def _lag(address: str) -> set[tuple[str, int]]:
    try:
        return {(row["topic"], row["partition"]) for row in json.loads(await _body(address, "/lag"))}
    except OSError:
        return set()


async def _all_read(address: str, topic: str, count: int) -> bool:
    """Return whether the reported lag is zero at this end offset."""
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
    connection = http.client.HTTPConnection(address, timeout=60)
    connection.request("GET", path)
    answer = connection.getresponse()
    body = answer.read()
    connection.close()
    return answer.status, body
