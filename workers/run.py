"""One worker process, from its settings to its end."""

import asyncio
import logging
import sys
import tempfile
from collections.abc import AsyncGenerator, Iterable, Mapping
from functools import partial
from importlib.metadata import version

from schemas.record import Record
from schemas.topics import DEAD_LETTERS, SIGNATURES
from streams.hashing import HashKey
from workers import assembly, kafka_offsets, kafka_records, kafka_rights, kafka_topics
from workers.checks import Grade, memory, persistence
from workers.health import Health
from workers.kafka_headers import tolerate_foreign_header_names
from workers.kafka_lag import lag_reader
from workers.kafka_tools import told
from workers.letters import Letters
from workers.matching import Matching, SignatureTopic
from workers.metrics import WorkerMetrics
from workers.redis_calls import ask, connected, server_facts, until_answered
from workers.redis_index import RedisIndex
from workers.settings import Settings, SettingsError, table
from workers.signing import Signing
from workers.status import serve_status
from workers.tls import in_the_clear
from workers.watch import start_watch

ROLES = ("sign", "match", "all")
WATCH_SECONDS = 5.0

log = logging.getLogger("nearstream.worker")


def run_worker(settings: Settings, role: str, wait_seconds: float) -> None:
    """Runs until a signal or a crash; leaves by SystemExit with 0 or 1.

    Raises:
        SettingsError: Settings, topics, or an index of another scheme make a start pointless.
        KafkaUnreachableError: No broker answered within `wait_seconds`.
        IndexUnavailableError: No Redis answered within `wait_seconds`.
    """
    from workers.app import create_app, serve  # here, as Faust takes a third of a second that other commands can spare

    _log_to_stderr()
    tolerate_foreign_header_names()
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    with tempfile.TemporaryDirectory(prefix="nearstream-") as datadir:
        signing, matching = loop.run_until_complete(prepared(settings, role, wait_seconds))
        _log_start(settings, role)
        health = Health()
        _show(settings, role, health, matching)
        app = create_app(settings, datadir, health, signing, matching)
        try:
            serve(app, health, loop, settings.stop_seconds)
        finally:
            log.info("stopped")


async def open_index(settings: Settings, key: HashKey, wait_seconds: float) -> RedisIndex:
    """The shared index, once Redis answers.

    Raises:
        KafkaUnreachableError: No broker told within `wait_seconds` whether the group has matched before.
        IndexUnavailableError: Redis did not answer within `wait_seconds`.
        SettingsError: The index belongs to another scheme or key, or its server would evict.
        IndexLostError: The group has matched before, and the index is gone.
    """
    may_create = not await kafka_offsets.ever_committed(settings, settings.topic_prefix + SIGNATURES.name, wait_seconds)
    address = assembly.index_address(settings, key)
    index = await until_answered(partial(RedisIndex.open, address, may_create=may_create), wait_seconds)
    await _require_same_topic(settings, await index.checkpoints(), wait_seconds)
    for info in await server_facts(index.client):
        for check in (memory(info), persistence(info)):
            if check.grade is not Grade.OK:
                log.warning("%s: %s", check.subject, check.detail)
    return index


async def _require_same_topic(settings: Settings, checkpoints: Mapping[int, int], wait_seconds: float) -> None:
    """Refuses an index that has seen more of the topic than there is: every record would be taken for a repeat."""
    topic = settings.topic_prefix + SIGNATURES.name
    ends = await kafka_offsets.end_offsets(settings, topic, wait_seconds)
    for partition, offset in checkpoints.items():
        if offset >= ends.get(partition, 0):
            raise SettingsError(
                f"topic {topic} partition {partition} ends at {ends.get(partition, 0)}, the index knows "
                f"offset {offset}: the topic was made anew; set NEARSTREAM_NAMESPACE to a new name"
            )


async def prepared(settings: Settings, role: str, wait_seconds: float) -> tuple[Signing | None, Matching | None]:
    """What each agent of this role decides with; made again if a broker that had answered goes away meanwhile.

    Raises:
        KafkaUnreachableError: It did so still after `wait_seconds`, or no waiting cures it.
    """
    return await told(partial(_prepare, settings, role, wait_seconds), wait_seconds, "the worker cannot get ready")


async def _prepare(settings: Settings, role: str, wait_seconds: float) -> tuple[Signing | None, Matching | None]:
    """What each agent of this role decides with, everything outside being there."""
    await kafka_rights.require(settings, role, wait_seconds)
    for warning in await kafka_topics.require(settings, wait_seconds):
        log.warning(warning)
    key = assembly.hash_key(settings)
    letters = Letters(
        settings.topic_prefix + DEAD_LETTERS.name,
        f"nearstream/{version('nearstream')} {role}",
        assembly.payload(settings),
    )
    signing = matching = None
    if role in ("sign", "all"):
        signing = Signing(
            assembly.signer(settings, key), assembly.bounds(settings), settings.topic_prefix + SIGNATURES.name, letters
        )
    if role in ("match", "all"):
        index = await open_index(settings, key, wait_seconds)
        matching = Matching(
            assembly.matcher(settings, index, key),
            assembly.scheme(settings, key),
            assembly.bounds(settings),
            settings.topic_prefix,
            letters,
            _signature_topic(settings),
            index.trusted_checkpoints,
            index.pass_over,
        )
    return signing, matching


def _show(settings: Settings, role: str, health: Health, matching: Matching | None) -> None:
    """Keeps the worker's health true, and serves it with its metrics."""
    address = assembly.index_address(settings, assembly.hash_key(settings))

    async def ask_index() -> None:
        if matching is not None:
            async with connected(address.connection) as client:
                await ask(client, "EXISTS", address.key)

    start_watch(health, lambda: lag_reader(settings, WATCH_SECONDS), ask_index)
    build = {"version": version("nearstream"), "role": role, "scheme": address.scheme}
    WorkerMetrics(health, matching.matcher.counts if matching else None, build).register()
    if settings.status != "off":
        served = serve_status(settings.status, health, settings.status_token)
        log.info("status: http://%s/metrics /healthz /readyz /lag", served)


def _signature_topic(settings: Settings) -> SignatureTopic:
    topic = settings.topic_prefix + SIGNATURES.name

    async def committed(partitions: Iterable[int]) -> dict[int, int]:
        return await kafka_offsets.committed(settings, topic, partitions)

    def read_range(partition: int, start: int, end: int) -> AsyncGenerator[Record]:
        return kafka_records.read_range(settings, topic, partition, start, end)

    return SignatureTopic(committed, read_range)


def _log_start(settings: Settings, role: str) -> None:
    key = assembly.hash_key(settings)
    log.info(
        "nearstream %s, role %s, group %s, scheme %s, signing by %s",
        version("nearstream"),
        role,
        settings.group,
        assembly.scheme(settings, key).name,
        assembly.signer(settings, key).implementation,
    )
    fault = assembly.native_fault()
    if fault:
        log.warning("%s", fault)
    if not settings.hash_key:
        log.warning("NEARSTREAM_HASH_KEY is not set: the public key serves, whoever knows it can aim collisions")
    exposed = in_the_clear(settings)
    if exposed:
        log.warning("%s: another host without TLS, whoever listens there reads all, passwords too", ", ".join(exposed))
    changed = [f"{variable}={value}" for variable, value, default, _ in table(settings) if value != default]
    log.info("settings: %s", " ".join(changed) or "all defaults")


def _log_to_stderr() -> None:
    logging.basicConfig(
        stream=sys.stderr, level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s", force=True
    )
    # 60 s without a broker make thousands of lines of aiokafka's.
    logging.getLogger("aiokafka").setLevel(logging.CRITICAL)
    for name in ("faust", "mode", "workers.transport"):
        logging.getLogger(name).setLevel(logging.WARNING)
    # A crash is told once, by the delivery loop.
    for name in ("faust.agents.actor", "faust.worker"):
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)
