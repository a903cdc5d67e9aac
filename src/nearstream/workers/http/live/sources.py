"""Feed the live page from Kafka (events, alerts, dead letters, lag) and Redis (states of workers, decided labels)."""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager, suppress
from functools import partial

from nearstream.schemas.alerts.alert import Alert
from nearstream.schemas.documents.record import ConsumerRecord
from nearstream.schemas.topics.codec import time_sent
from nearstream.schemas.topics.dead_letter import read_dead_letter
from nearstream.schemas.topics.table import ALERTS, DEAD_LETTERS, DOCUMENTS, EVENT_TOPICS, SIGNATURES, VERDICTS, Topic
from nearstream.schemas.verdicts.events import Retraction
from nearstream.streams.store.limits import IndexUnavailableError
from nearstream.workers.config.settings import Settings, SettingsError, own_group
from nearstream.workers.http.live.feed import Feed
from nearstream.workers.http.live.troubles import LETTERS
from nearstream.workers.kafka.client import (
    AIOKafkaAdminClient,
    AIOKafkaConsumer,
    TopicPartition,
    admin,
    consumer,
    require_answer,
)
from nearstream.workers.kafka.errors import KafkaError, KafkaUnreachableError
from nearstream.workers.kafka.lag import group_members, lag_reader, unread
from nearstream.workers.kafka.offsets import partitions
from nearstream.workers.kafka.records import event_of, follow_from, offsets_since
from nearstream.workers.kafka.whole_topic import read_silences, read_topic
from nearstream.workers.redis.kept.label_guards import LabelGuards
from nearstream.workers.redis.kept.worker_states import worker_states
from nearstream.workers.redis.server.client import Caller

PAST_RECORDS = 50_000  # of a partition, that are read at most after a start
_TURN = 200  # records after which others have their turn
_HOUR_MS = 3_600_000
_CONNECT_SECONDS = 30.0
_RETRY_SECONDS = 2.0
_LAG_SECONDS = 5.0
_STOP_SECONDS = 5.0
_WATCH_SECONDS = 0.5
_ANSWER_SECONDS = 2.0  # for any broker, and for Redis
_BROKER_SECONDS = 0.9  # for one, so that another is asked in time

log = logging.getLogger(__name__)
_MINUTE_SECONDS = 60.0


@asynccontextmanager
async def fed_by_kafka(settings: Settings, feed: Feed) -> AsyncIterator[None]:
    """Feed the live page while the block runs, however often Kafka is away.

    The consumers have no group, so they commit nothing and move no offset of the workers. They begin with the events
    of the last hour.
    """
    # All that these topics keep, which is little, and what comes.
    alerts = partial(read_topic, settings, ALERTS.name, feed.alarms.take, _CONNECT_SECONDS, until_end=False)
    silences = partial(read_silences, settings, feed.alarms.said.say, _CONNECT_SECONDS, until_end=False)
    alone = own_group(settings, "alert")
    work = (
        _follow(settings, feed),
        _repeat("lag", partial(_read_lag, settings, feed, "", (DOCUMENTS, SIGNATURES, VERDICTS)), _LAG_SECONDS),
        _repeat("lag of alerts", partial(_read_lag, alone, feed, "alert", (VERDICTS, DEAD_LETTERS)), _LAG_SECONDS),
        _repeat("alerts", alerts, _RETRY_SECONDS),
        _repeat("silences", silences, _RETRY_SECONDS),
        _follow_letters(settings, feed),
        _watch(settings, feed),
    )
    async with _running(feed, *work):
        yield


@asynccontextmanager
async def _running(feed: Feed, *work: Coroutine[None, None, None]) -> AsyncIterator[None]:
    """Do work beside the block, until the block ends."""
    tasks = {asyncio.create_task(each) for each in work}
    for task in tasks:
        task.add_done_callback(partial(say_ended, feed))
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks, timeout=_STOP_SECONDS)


def say_ended(feed: Feed, task: asyncio.Task[None]) -> None:
    """Let the page say that something which feeds it has ended by a bug, instead of showing old numbers."""
    error = None if task.cancelled() else task.exception()
    if error is not None:
        feed.away["page"] = "what feeds this page has failed: the log of its server says more, start it again"
        log.error("what feeds the live page has failed", exc_info=error)


async def _follow(settings: Settings, feed: Feed) -> None:
    """Feed events until this is cancelled, those of an outage included."""
    since_ms = _now_ms() - _HOUR_MS
    while True:
        try:
            topics = [settings.topic_prefix + topic.name for topic in EVENT_TOPICS]
            tps = await partitions(settings, topics, _CONNECT_SECONDS)
            async with consumer(settings, _CONNECT_SECONDS) as client:
                starts, total = await _starts(client, tps, since_ms)
                began_ms, done, feed.why = _now_ms(), 0, ""
                feed.loading = 0.0 if total else None
                async with aclosing(follow_from(client, starts)) as records:
                    async for record in records:
                        done, since_ms = done + 1, record.timestamp_ms
                        # Offsets may have gaps, so a record of now ends the reading of the past too.
                        is_past = done < total and since_ms < began_ms
                        feed.loading = done / total if is_past else None
                        _take(feed, record, topics[0])
                        if is_past and not done % _TURN:
                            await asyncio.sleep(0)
        except (KafkaUnreachableError, SettingsError, KafkaError) as error:
            feed.why = str(error)
            log.warning("the live page gets no events: %s", error)
        await asyncio.sleep(_RETRY_SECONDS)


async def _starts(
    client: AIOKafkaConsumer, tps: Sequence[TopicPartition], since_ms: int
) -> tuple[dict[TopicPartition, int], int]:
    """Return the offsets from which on events are read, and how many these are now."""
    ends = await client.end_offsets(tps)
    since = await offsets_since(client, tps, since_ms)
    starts = {tp: max(since[tp], ends[tp] - PAST_RECORDS) for tp in tps}
    return starts, sum(ends[tp] - starts[tp] for tp in tps)


def _take(feed: Feed, record: ConsumerRecord, first_topic: str) -> None:
    """Feed the event of a record, a retraction only from the first topic."""
    event = event_of(record)
    if event is None or (isinstance(event, Retraction) and record.topic != first_topic):
        return
    sent = time_sent(record.headers)
    feed.add(event, int(sent.timestamp() * 1000) if sent else record.timestamp_ms)


async def _watch(settings: Settings, feed: Feed) -> None:
    """Ask every second whether a broker answers, because a consumer waits in silence while none does."""
    while True:
        try:
            async with admin(settings, _ANSWER_SECONDS, _BROKER_SECONDS) as client:
                while await _answers(client):
                    feed.away.pop("Kafka", None)
                    await asyncio.sleep(_WATCH_SECONDS)
                # Before the client is closed, which may take seconds.
                feed.away["Kafka"] = f"Kafka at {settings.kafka} does not answer within {_ANSWER_SECONDS:g} s"
        except (KafkaUnreachableError, SettingsError) as error:
            feed.away["Kafka"] = str(error)
        await asyncio.sleep(_WATCH_SECONDS)


async def _answers(client: AIOKafkaAdminClient) -> bool:
    """Return whether a broker answers, of which each is asked at most twice."""
    with suppress(TimeoutError):
        async with asyncio.timeout(_ANSWER_SECONDS):
            for _ in range(2):
                with suppress(KafkaError):
                    await require_answer(client)
                    return True
    return False


async def _repeat(what: str, read: Callable[[], Awaitable[None]], pause_seconds: float) -> None:
    while True:
        try:
            await read()
        except (KafkaUnreachableError, SettingsError, KafkaError) as error:
            log.info("the live page gets no %s: %s", what, error)
        await asyncio.sleep(pause_seconds)


async def _read_lag(settings: Settings, feed: Feed, role: str, topics: Sequence[Topic]) -> None:
    """Read the lag of a group again and again, while Kafka answers.

    The group is that of one role, or with an empty role that of the other workers.
    """
    verdicts = settings.topic_prefix + VERDICTS.name
    try:
        async with (
            admin(settings, _CONNECT_SECONDS) as client,
            lag_reader(settings, _CONNECT_SECONDS, topics) as read_lag,
        ):
            while True:
                members = await group_members(client, settings.group)
                rows = await read_lag()
                reads_verdicts = any(row.topic == verdicts and row.committed >= 0 for row in rows)
                if role:
                    feed.is_alerting = reads_verdicts
                if not reads_verdicts:  # no worker `decide` or `alert` has ever run
                    rows = [row for row in rows if row.topic.endswith((DOCUMENTS.name, SIGNATURES.name))]
                feed.lags[role] = (time.monotonic(), rows)
                # What has just been sent to a new deployment waits for a worker that may be starting.
                late = [row for row in rows if row.committed >= 0 or (row.seconds or 0) > _MINUTE_SECONDS]
                feed.unread[settings.group] = tuple(unread(late, members, role))
                await asyncio.sleep(_LAG_SECONDS)
    finally:
        feed.lags.pop(role, None)
        feed.unread.pop(settings.group, None)


async def _follow_letters(settings: Settings, feed: Feed) -> None:
    """Feed the newest dead letters of each partition, and those that come, until this is cancelled."""
    topic = settings.topic_prefix + DEAD_LETTERS.name
    read_until: dict[TopicPartition, int] = {}
    while True:
        try:
            tps = await partitions(settings, [topic], _CONNECT_SECONDS)
            async with consumer(settings, _CONNECT_SECONDS) as client:
                begins, ends = await client.beginning_offsets(tps), await client.end_offsets(tps)
                starts = {tp: max(begins[tp], read_until.get(tp, ends[tp] - LETTERS)) for tp in tps}
                feed.letters.why = ""
                async with aclosing(follow_from(client, starts)) as records:
                    async for record in records:
                        read_until[TopicPartition(record.topic, record.partition)] = record.offset + 1
                        dead_letter = read_dead_letter(record)
                        if dead_letter is not None:
                            feed.letters.add(dead_letter)
        except (KafkaUnreachableError, SettingsError, KafkaError) as error:
            feed.letters.why = str(error)
            log.info("the live page gets no dead letters: %s", error)
        await asyncio.sleep(_RETRY_SECONDS)


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def watching_redis(
    client: Caller, namespace: str, guards: LabelGuards, feed: Feed
) -> AbstractAsyncContextManager[None]:
    """Keep what the page knows from Redis up to date in a block.

    That are the states of workers, the labels that somebody has decided about, and whether Redis answers.
    """
    return _running(feed, _watch_redis(client, namespace, guards, feed))


async def _watch_redis(client: Caller, namespace: str, guards: LabelGuards, feed: Feed) -> None:
    while True:
        try:
            async with asyncio.timeout(_ANSWER_SECONDS):
                feed.workers = await worker_states(client, namespace)
                feed.are_workers_known = True
                feed.alarms.decide([each for each in feed.alarms.floods() if await _is_decided(guards, each)])
            feed.away.pop("Redis", None)
        except TimeoutError:
            feed.away["Redis"] = f"Redis does not answer within {_ANSWER_SECONDS:g} s"
        except (IndexUnavailableError, SettingsError) as error:
            feed.away["Redis"] = str(error)
        await asyncio.sleep(_WATCH_SECONDS)


async def _is_decided(guards: LabelGuards, flood: Alert) -> bool:
    """Return whether somebody has confirmed the label that too much matches, or has taken it back."""
    guard = await guards.read(flood.collection, flood.subject)
    return guard is None or guard.state != "suspended"
