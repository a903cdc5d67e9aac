"""Run one worker process, from its settings to its end."""

import asyncio
import gc
import logging
import os
import socket
import time
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from importlib.metadata import version

from nearstream.schemas.alerts.alert import Alert
from nearstream.schemas.documents.document import from_milliseconds
from nearstream.schemas.documents.record import ConsumerRecord
from nearstream.schemas.live.state import WorkerState, WorkerStateName
from nearstream.schemas.topics.table import ALERTS, DEAD_LETTERS, DECISIONS, DOCUMENTS, SIGNATURES, VERDICTS
from nearstream.streams.alerting.counting import Silences
from nearstream.streams.deciding.decider import Decider
from nearstream.streams.ingest.sites import site_of
from nearstream.streams.store.limits import IndexLostError
from nearstream.workers.config.alert_rules import AlertSettings, load_alerts
from nearstream.workers.config.exit_codes import Exit
from nearstream.workers.config.reloading import reload_on_hangup
from nearstream.workers.config.settings import Settings, SettingsError, own_group, shown, table
from nearstream.workers.config.tls import in_the_clear
from nearstream.workers.http.live.troubles import Alarms
from nearstream.workers.http.requests import Gate
from nearstream.workers.http.status import serve_status
from nearstream.workers.http.webhooks import Webhooks
from nearstream.workers.kafka import offsets as kafka_offsets
from nearstream.workers.kafka import records as kafka_records
from nearstream.workers.kafka import topics as kafka_topics
from nearstream.workers.kafka.batches import use_our_batches
from nearstream.workers.kafka.client import retry_until_answered
from nearstream.workers.kafka.lag import lag_reader
from nearstream.workers.kafka.whole_topic import follow_in_thread, read_silences, read_topic
from nearstream.workers.monitoring.health import Health
from nearstream.workers.monitoring.metrics import WorkerMetrics, register
from nearstream.workers.monitoring.probe import start_probe
from nearstream.workers.operations.checks import memory, persistence
from nearstream.workers.operations.claim import claim_deployment, describe_lost_index, require_deployment
from nearstream.workers.pipeline.alert import Alerting
from nearstream.workers.pipeline.dead_letters import DeadLetterWriter
from nearstream.workers.pipeline.decide import Deciding, notice_error_text
from nearstream.workers.pipeline.deployment import Deployment
from nearstream.workers.pipeline.match import Matching, SignatureTopic
from nearstream.workers.pipeline.sign import Signing
from nearstream.workers.pipeline.step import patience
from nearstream.workers.redis.index.index import RedisIndex
from nearstream.workers.redis.kept.decisions import DecisionStore
from nearstream.workers.redis.kept.label_guards import LabelGuards
from nearstream.workers.redis.kept.tallies import TallyStore
from nearstream.workers.redis.kept.worker_states import forget_worker, say_state
from nearstream.workers.redis.reading.members import LabelledFamilies, stored_family
from nearstream.workers.redis.server.client import connect, pipelined, server_facts, until_answered
from nearstream.workers.redis.server.layout import KeyKind

WATCH_SECONDS = 5.0

GC_THRESHOLD = 5_000  # new objects before a look for cycles, which have few: at 700 it takes .03 of the processor time

log = logging.getLogger(__name__)


def run_worker(settings: Settings, role: str, wait_seconds: float, *, new_group: bool, drain: bool) -> None:
    """Run a worker until a signal or a crash.

    Its role is `sign`, `match`, `decide`, `alert`, or `all` for the agents of the first two. At the start it waits for
    Kafka, and for Redis, for `wait_seconds` each. With `new_group` its group takes the place of the one before. With
    `drain` no record from before now halts it.
    """
    # Imported on use: loading Faust takes a third of a second, which `nearstream doctor` does not need.
    from nearstream.workers.pipeline.faust_runtime import serve
    from nearstream.workers.worker.topology import create_app

    use_our_batches()
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    deployment = Deployment.of(settings)
    gate = Gate(settings.status_token)
    reload_on_hangup(loop, lambda read: gate.take(read.status_token))
    agents = loop.run_until_complete(prepare(deployment, role, wait_seconds, new_group=new_group))
    _log_start(deployment, role)
    health = Health(drained_ms=time.time_ns() // 1_000_000 if drain else 0)
    signing, matching, *_ = agents
    _start_monitoring(deployment, role, health, matching)
    serve_status(settings, health, gate)
    app = create_app(own_group(settings, role), health, *agents)
    # What was loaded until here stays. To look through it again takes a full garbage collection 50 ms.
    gc.collect()
    gc.freeze()
    gc.set_threshold(GC_THRESHOLD)
    try:
        serve(app, health, loop, settings.stop_seconds)
    except SystemExit as ended:
        if ended.code == Exit.OK:
            health.leave()
        raise
    finally:
        if signing is not None:
            signing.pages.close()
        log.info("stopped")


# The parts with which the agents of a worker decide, None for a missing agent.
Agents = tuple[Signing | None, Matching | None, Deciding | None, Alerting | None]


async def open_index(deployment: Deployment, wait_seconds: float) -> RedisIndex:
    """Open the shared index as soon as Redis answers.

    The index is created only if the group has never committed an offset of `signatures`. Otherwise a missing index
    has been lost and must be rebuilt.
    """
    topic = deployment.topic(SIGNATURES)
    may_create = not await kafka_offsets.ever_committed(deployment.settings, topic, wait_seconds)
    partitions = len(await kafka_offsets.partitions(deployment.settings, [topic], wait_seconds))
    opening = partial(RedisIndex.open, deployment.index_address(), partitions=partitions, may_create=may_create)
    try:
        index = await until_answered(opening, wait_seconds)
    except IndexLostError as error:
        raise IndexLostError(await describe_lost_index(deployment, wait_seconds)) from error
    await _require_same_topic(deployment, await index.checkpoints(), wait_seconds)
    for info in await server_facts(index.client):
        for check in (memory(info), persistence(info)):
            if check.grade != "OK":
                log.warning("%s: %s", check.subject, check.detail)
    return index


async def _require_same_topic(deployment: Deployment, checkpoints: Mapping[int, int], wait_seconds: float) -> None:
    """Refuse an index that is ahead of the topic.

    It was built from an earlier topic of this name, so it would take new records for repeats.
    """
    topic = deployment.topic(SIGNATURES)
    ends = await kafka_offsets.end_offsets(deployment.settings, topic, wait_seconds)
    for partition, offset in checkpoints.items():
        if offset >= ends.get(partition, 0):
            raise SettingsError(
                f"topic {topic} partition {partition} ends at {ends.get(partition, 0)}, but the index has already "
                f"admitted offset {offset}: the topic was created again; set NEARSTREAM_NAMESPACE to a new name"
            )


async def prepare(deployment: Deployment, role: str, wait_seconds: float, *, new_group: bool = False) -> Agents:
    """Make what the agents of this role decide with, once Kafka and Redis are ready."""
    preparation = partial(_prepare, deployment, role, wait_seconds, new_group=new_group)
    return await retry_until_answered(preparation, wait_seconds, "the worker cannot get ready")


async def _prepare(deployment: Deployment, role: str, wait_seconds: float, *, new_group: bool) -> Agents:
    settings = deployment.settings
    if role == "decide" and settings.verdicts != "all":
        raise SettingsError(f"NEARSTREAM_VERDICTS={settings.verdicts}: the role decide requires all")
    if role == "alert" and settings.verdicts == "none":
        raise SettingsError("NEARSTREAM_VERDICTS=none: the role alert requires all or related")
    alerts = load_alerts(settings.alerts)
    async with reported(f"Kafka at {settings.kafka}", wait_seconds):
        for warning in await kafka_topics.require(settings, wait_seconds):
            log.warning(warning)
    async with reported(f"Redis at {shown('redis', settings.redis)}", wait_seconds):
        await require_deployment(deployment, role, wait_seconds, new_group=new_group)
    dead_letters = deployment.dead_letter_writer(role)
    signing = matching = deciding = alerting = None
    if role == "decide":
        store = DecisionStore(connect(deployment.index_address()), settings.namespace)
        decider = partial(Decider, site_of=site_of, freshness=settings.crawl_freshness, notice=notice_error_text)
        deciding = Deciding(store, decider, deployment.topic(DECISIONS), dead_letters)
    if role == "alert":
        alerting = await _make_alerting(deployment, alerts, dead_letters, wait_seconds)
    if role in ("sign", "all"):
        signing = Signing(
            deployment.signer(),
            deployment.document_limits,
            deployment.topic(SIGNATURES),
            dead_letters,
            deployment.page_reader(),
        )
    if role in ("match", "all"):
        index = await open_index(deployment, wait_seconds)
        matching = Matching(
            deployment.matcher(index.store(), patience),
            deployment.scheme,
            deployment.document_limits,
            deployment.settings.topic_prefix,
            dead_letters,
            _signature_topic(deployment),
            index.trusted_checkpoints,
            index.cover,
            deployment.verdicts(),
            partial(stored_family, index),
        )
    # Last, so that a refused start leaves no record where NEARSTREAM_NAMESPACE is mistyped.
    await claim_deployment(deployment, role, wait_seconds, new_group=new_group)
    return signing, matching, deciding, alerting


def _start_monitoring(deployment: Deployment, role: str, health: Health, matching: Matching | None) -> None:
    settings, address = deployment.settings, deployment.index_address()

    own = own_group(settings, role)
    name = f"{socket.gethostname()}:{os.getpid()}"

    speaking = connect(address)  # it knows all nodes of a cluster, also when that of the address has failed

    async def ask_index() -> None:
        if role != "sign":
            await pipelined(speaking, [("EXISTS", address.tag(slot) + KeyKind.FACTS) for slot in range(address.slots)])

    async def say(state: WorkerStateName, since_ms: int, why: str) -> None:
        since = from_milliseconds(since_ms)
        told = WorkerState(worker=name, role=role, group=own.group, state=state, since=since, why=why)
        await say_state(speaking, settings.namespace, told)

    async def forget() -> None:
        await forget_worker(speaking, settings.namespace, name)

    read = {"alert": (VERDICTS, DEAD_LETTERS), "decide": (VERDICTS,)}.get(role, (DOCUMENTS, SIGNATURES))
    open_lag = partial(lag_reader, own, WATCH_SECONDS, read)
    start_probe(health, open_lag, ask_index, deployment.topic(SIGNATURES), (say, forget))
    build = {"version": version("nearstream"), "role": role, "scheme": address.scheme}
    counts = matching.matcher.counts if matching else None
    register(WorkerMetrics(health, counts, build))


def _signature_topic(deployment: Deployment) -> SignatureTopic:
    settings, topic = deployment.settings, deployment.topic(SIGNATURES)

    async def committed(partitions: Iterable[int]) -> dict[int, int]:
        return await kafka_offsets.committed(settings, topic, partitions)

    def read_range(partition: int, start: int, end: int) -> AsyncGenerator[ConsumerRecord]:
        return kafka_records.read_range(settings, topic, partition, start, end)

    return SignatureTopic(committed, read_range)


def _log_start(deployment: Deployment, role: str) -> None:
    settings = deployment.settings
    log.info(
        "nearstream %s, role %s, group %s, scheme %s",
        version("nearstream"),
        role,
        settings.group,
        deployment.scheme.name,
    )
    if not settings.hash_key:
        log.warning("NEARSTREAM_HASH_KEY is not set: the public key is used, so anyone can construct collisions")
    exposed = in_the_clear(settings)
    if exposed:
        log.warning("%s: another host without TLS, its traffic and passwords can be read", ", ".join(exposed))
    changed = [f"{variable}={value}" for variable, value, default, _ in table(settings) if value != default]
    log.info("settings: %s", " ".join(changed) or "all defaults")


FIRST_REPORT_SECONDS = 1.0
REPORT_SECONDS = 10.0


@asynccontextmanager
async def reported(server: str, wait_seconds: float) -> AsyncIterator[None]:
    """Log after a second, and then every 10 s, how long this worker waits for a server."""
    reporting = asyncio.create_task(_report(server, wait_seconds))
    try:
        yield
    finally:
        reporting.cancel()


async def _report(server: str, wait_seconds: float) -> None:
    loop = asyncio.get_running_loop()
    deadline = loop.time() + wait_seconds
    await asyncio.sleep(FIRST_REPORT_SECONDS)
    while (left := deadline - loop.time()) > 0:
        log.warning("waiting for %s, at most %.0f s more", server, left)
        await asyncio.sleep(REPORT_SECONDS)


async def _make_alerting(
    deployment: Deployment, alerts: AlertSettings, dead_letters: DeadLetterWriter, wait_seconds: float
) -> Alerting:
    settings, silences = deployment.settings, Silences()
    await read_silences(settings, silences.say, wait_seconds, until_end=True)
    follow_in_thread(settings, silences.say, wait_seconds)
    tallies = TallyStore(connect(deployment.index_address()), settings.namespace)
    guards = LabelGuards(tallies.client, settings.namespace)
    alarms = Alarms()
    await read_topic(settings, ALERTS.name, alarms.take, wait_seconds, until_end=True)
    webhooks = Webhooks(alerts.targets, public_url=alerts.public_url, holds_back=partial(_holds_back, silences))
    alerting = Alerting(
        alerts.rules,
        tallies,
        deployment.topic(ALERTS),
        deployment.scheme.name,
        dead_letters,
        LabelledFamilies(deployment.index_address()).growth,
        guards.suspend,
        silences,
        webhooks.offer,
    )
    await alerting.adopt(alarms.firing("", time.time_ns() // 1_000_000))
    return alerting


def _holds_back(silences: Silences, alert: Alert) -> bool:
    return silences.holds_back(alert, time.time_ns() // 1_000_000)
