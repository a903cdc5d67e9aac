"""Send spans of the records that carry a W3C trace to an OpenTelemetry collector."""

import logging
from collections.abc import Callable, Mapping, Sequence

from nearstream.schemas.documents.record import ConsumerRecord, traceparent

ENDPOINTS = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
EXPORT_SECONDS = 5.0
_QUEUED_SPANS = 8192  # further ones are dropped while the collector is away

log = logging.getLogger(__name__)


Times = tuple[int, int, int]  # when a batch was taken, decided and delivered, in nanoseconds since 1970
Trace = Callable[[str, Sequence[ConsumerRecord], Times], None]


def no_trace(_name: str, _records: Sequence[ConsumerRecord], _times: Times) -> None:
    """Send nothing."""


def tracing(environment: Mapping[str, str], version: str) -> Trace:
    """Return a function that notes what became of a batch, as two spans of each record with a `traceparent`.

    The spans are sent in the background, in batches. What is not sent when the process is killed is lost. Nothing is
    sent unless the environment names the collector by OpenTelemetry's own variables.
    """
    if not any(map(environment.get, ENDPOINTS)):
        return no_trace
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
        from opentelemetry.trace import SpanKind
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
    except ModuleNotFoundError:
        log.warning("no traces are sent: %s needs the extra `otel`: pip install 'nearstream[otel]'", ENDPOINTS[1])
        return no_trace
    provider = TracerProvider(resource=Resource.create({"service.name": "nearstream", "service.version": version}))
    exporter = OTLPSpanExporter(timeout=EXPORT_SECONDS)
    provider.add_span_processor(BatchSpanProcessor(exporter, max_queue_size=_QUEUED_SPANS))
    tracer, propagator = provider.get_tracer("nearstream", version), TraceContextTextMapPropagator()

    def trace(name: str, records: Sequence[ConsumerRecord], times: Times) -> None:
        taken, decided, delivered = times
        for record in records:
            parent = traceparent(record.headers)
            if parent is None:
                continue
            context = propagator.extract({"traceparent": parent.decode("ascii", "replace")})
            facts: dict[str, str | int] = {
                "messaging.system": "kafka",
                "messaging.destination.name": record.topic,
                "messaging.destination.partition.id": str(record.partition),
                "messaging.kafka.offset": record.offset,
                "messaging.batch.message_count": len(records),
            }
            for each, start, end in ((name, taken, decided), ("deliver", decided, delivered)):
                tracer.start_span(each, context, SpanKind.CONSUMER, facts, start_time=start).end(end)

    return trace
