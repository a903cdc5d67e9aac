"""A record that carries a W3C trace leaves spans at an OpenTelemetry collector, one for each step."""

from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from tests.support.answering import answering
from tests.support.deployment import TEXTS, deployed, until

TRACE, PARENT = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"


@contextmanager
def collector() -> Iterator[tuple[str, list[Span]]]:
    """Yield the address of a collector, and the spans that it gets."""
    spans: list[Span] = []

    def answer(_: BaseHTTPRequestHandler, body: bytes) -> tuple[int, bytes]:
        sent = ExportTraceServiceRequest.FromString(body)
        spans.extend(span for resource in sent.resource_spans for scope in resource.scope_spans for span in scope.spans)
        return 200, b""

    with answering(answer) as port:
        yield f"http://127.0.0.1:{port}/v1/traces", spans


async def test_a_document_is_traced_from_its_signature_to_its_verdict(
    kafka: str, redis_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with collector() as (address, spans):

        async def all_are_there() -> bool:
            return len(of_the_trace(spans)) == 8

        monkeypatch.setenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", address)
        async with deployed(kafka, redis_url, tmp_path) as deployment:
            records = [
                deployment.document(name, TEXTS[0]) for name in ("a", "b", "untraced", "not sampled", "no trace")
            ]
            for record, header in zip(
                records, (f"{TRACE}-{PARENT}-01",) * 2 + (None, f"{TRACE}-{PARENT}-00", "?"), strict=True
            ):
                if header:
                    record.headers.append(("traceparent", f"00-{header}".encode()))
            with deployment.worker():
                await deployment.send(records)
                await deployment.drained()
        await until(all_are_there)
    told = of_the_trace(spans)
    assert sorted(span.name for span in told) == ["deliver"] * 4 + ["match"] * 2 + ["sign"] * 2
    assert {span.parent_span_id.hex() for span in told} == {PARENT}
    assert all(span.start_time_unix_nano <= span.end_time_unix_nano for span in told)
    ends = {span.name: span.end_time_unix_nano for span in told if span.name != "deliver"}
    assert ends["sign"] < ends["match"]


def of_the_trace(spans: list[Span]) -> list[Span]:
    return [span for span in spans if span.trace_id.hex() == TRACE]
