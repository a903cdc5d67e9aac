"""Rebuild a lost index from the `signatures` topic, without sending events.

Documents are compared again, because families are decided by comparisons. Families keep the ids, and their members the
ordinals, that the last verdicts name.
"""

import asyncio
import heapq
import time
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, aclosing, suppress
from dataclasses import dataclass, field

from nearstream.schemas.documents.document import document_key, to_milliseconds
from nearstream.schemas.documents.evidence import family_id
from nearstream.schemas.documents.record import ConsumerRecord, ProducerRecord
from nearstream.schemas.topics.codec import InvalidMessageError, decode_event, decode_signature
from nearstream.schemas.topics.table import SIGNATURES, VERDICTS
from nearstream.schemas.verdicts.verdict import DocumentVerdict
from nearstream.streams.matching.arriving import Arrival
from nearstream.streams.matching.matcher import Matcher
from nearstream.streams.matching.telling import Matched
from nearstream.streams.store.limits import IndexBehindError, IndexUnavailableError
from nearstream.streams.store.messages import Join
from nearstream.streams.store.registration import Status
from nearstream.streams.store.store import Position
from nearstream.workers.config.settings import Settings, SettingsError
from nearstream.workers.kafka import offsets as kafka_offsets
from nearstream.workers.kafka import records as kafka_records
from nearstream.workers.operations.terminal import Progress
from nearstream.workers.pipeline.dead_letters import DATA_ERRORS
from nearstream.workers.pipeline.deployment import Deployment
from nearstream.workers.pipeline.signature_records import arrival_of, at_home
from nearstream.workers.pipeline.step import cooperative_yield
from nearstream.workers.redis.index.rebuild import LEASE_SECONDS, FormerFamilies, IndexRebuild
from nearstream.workers.redis.server.address import IndexAddress
from nearstream.workers.redis.store.opening import RebuildRefusedError

BATCH = 32
_NAMED = 5  # schemes that a message names


@dataclass(frozen=True)
class _Rebuild:
    rebuild: IndexRebuild  # the index with its lease
    deployment: Deployment  # the deployment whose signatures are read
    families: FormerFamilies  # the families that were known before
    matcher: Matcher  # matches the signatures
    progress: Progress  # counts the records
    wait_seconds: float  # longest wait for a broker
    is_again: bool  # it was interrupted before, so that its next records may have been matched in part
    # The number of records by outcome: `admitted` documents, `removed` ones, `labels` that were given or taken back,
    # and `skipped` records, which are unreadable, have another scheme, or got a dead letter.
    rebuilt: Counter[str] = field(default_factory=Counter)

    async def admit(self, records: list[ConsumerRecord], now_ms: int) -> None:
        """Match a batch, and note that it is done. A record on which that fails gets a dead letter."""
        self.rebuild.set_time(now_ms)
        dead_letters = await self._match_apart(records)
        if dead_letters:
            async with kafka_records.sender(self.deployment.settings, self.wait_seconds) as send_all:
                await send_all(dead_letters)
        await self.rebuild.cover(list({record.partition: Position(*record[1:3]) for record in records}.values()))
        self.progress.step(len(records))

    async def _match_apart(self, records: Sequence[ConsumerRecord]) -> list[ProducerRecord]:
        """Match records, one by one after an error of data, and return the dead letters."""
        try:
            await self._match(records)
        except DATA_ERRORS as error:
            if len(records) == 1:
                self.rebuilt["skipped"] += 1
                return [self.deployment.dead_letter_writer("rebuild").unprocessable(records[0], "match", error)]
        else:
            return []
        return [sent for record in records for sent in await self._match_apart([record])]

    async def _match(self, records: Sequence[ConsumerRecord]) -> None:
        counted = [self._arrival(record) for record in records]
        arrivals = [arrival for arrival in counted if arrival is not None]
        signed = [(self.rebuild.store.number(each.position), each.signature) for each in arrivals if each.signature]
        own_ids = {at: bytes.fromhex(family_id(one.document_key, one.version, one.scheme)) for at, one in signed}
        self.rebuild.set_own_ids(own_ids)
        found = await self.matcher.match_all(arrivals, cooperative_yield(), is_again=self.is_again)
        joins = founder_joins(self.families, own_ids, found)
        if joins:
            await self.rebuild.store.join(joins)
        self.rebuilt.update(map(_outcome, counted))

    def _arrival(self, record: ConsumerRecord) -> Arrival | None:
        try:
            arrival = arrival_of(record, self.deployment.scheme, self.deployment.document_limits)
            return at_home(arrival, self.matcher.partitions)
        except InvalidMessageError:
            return None


def _outcome(arrival: Arrival | None) -> str:
    if arrival is None:
        return "skipped"
    if arrival.labelling is not None:
        return "labels"
    return "removed" if arrival.signature is None else "admitted"


async def require_own_signatures(deployment: Deployment, wait_seconds: float) -> None:
    """Refuse a scheme or key of which the topic holds no signature, although it holds others."""
    settings, topic = deployment.settings, deployment.topic(SIGNATURES)
    others: set[str] = set()
    for partition, end in (await kafka_offsets.end_offsets(settings, topic, wait_seconds)).items():
        async with aclosing(kafka_records.read_range(settings, topic, partition, 0, end)) as records:
            async for record in records:
                scheme = _scheme_of(record)
                if scheme == deployment.scheme.name:
                    return
                others |= {scheme} if scheme and len(others) < _NAMED else set()
    if others:
        raise SettingsError(
            f"NEARSTREAM_SCHEME, NEARSTREAM_HASH_KEY: the signatures on {topic} have the scheme"
            f" {', '.join(sorted(others))}, the settings give {deployment.scheme.name}: restore the former values (and"
            " NEARSTREAM_TOPIC_PREFIX)"
        )


def _scheme_of(record: ConsumerRecord) -> str:
    try:
        return decode_signature(record.value).scheme if record.value else ""
    except InvalidMessageError:
        return ""


async def rebuild(deployment: Deployment, address: IndexAddress, wait_seconds: float, *, quiet: bool) -> Counter[str]:
    """Match again what the group has matched, in order of time, or go on with that."""
    ends = await _matched(deployment.settings, wait_seconds)
    families = await former_families(deployment, wait_seconds)
    rebuilding = await IndexRebuild.begin(address, partitions=len(ends), families=families)
    try:
        known = await rebuilding.index.checkpoints()
        starts = {partition: known.get(partition, -1) + 1 for partition in ends}
        total = sum(max(end - starts[partition], 0) for partition, end in ends.items())
        progress = Progress("rebuilt", total, quiet)
        matcher = deployment.matcher(rebuilding.store)
        run = _Rebuild(rebuilding, deployment, families, matcher, progress, wait_seconds, bool(known))
        renewing = asyncio.create_task(_renew(rebuilding))
        try:
            await _fill(run, starts, ends)
        except IndexUnavailableError:
            await rebuilding.lease.renew()  # It raises another error if another rebuild has taken the index.
            raise
        except IndexBehindError as error:
            raise IndexUnavailableError(
                "Redis has lost what was rebuilt last: run `nearstream rebuild` again, which goes on before that"
            ) from error
        finally:
            renewing.cancel()
            await asyncio.wait([renewing])
        await rebuilding.lease.finish()
    finally:
        await rebuilding.close()
    run.progress.end()
    return run.rebuilt


async def _fill(run: _Rebuild, starts: Mapping[int, int], ends: Mapping[int, int]) -> None:
    batch: list[ConsumerRecord] = []
    now_ms = 0
    async with aclosing(_by_time(run.deployment.settings, starts, ends)) as records:
        async for record in records:
            batch.append(record)
            if len(batch) == BATCH:
                now_ms = _time_of(batch, now_ms)
                await run.admit(batch, now_ms)
                batch = []
    if batch:
        await run.admit(batch, _time_of(batch, now_ms))
    # A partition may end with records that compaction has removed, or begin with them.
    await run.rebuild.cover([Position(partition, end - 1) for partition, end in ends.items() if end])


def _time_of(batch: Sequence[ConsumerRecord], before_ms: int) -> int:
    """Return the time of a batch, neither before that of the last one nor ahead of the clock."""
    return max(before_ms, min(batch[-1].timestamp_ms, time.time_ns() // 1_000_000))


async def _matched(settings: Settings, wait_seconds: float) -> dict[int, int]:
    """Return the offset up to which the group has matched each partition, or if it never has, the end of each."""
    topic = settings.topic_prefix + SIGNATURES.name
    ends = await kafka_offsets.end_offsets(settings, topic, wait_seconds)
    known = await kafka_offsets.committed(settings, topic, ends)
    if all(offset < 0 for offset in known.values()):
        return ends
    return {partition: max(known.get(partition, -1), 0) for partition in ends}


async def _by_time(
    settings: Settings, starts: Mapping[int, int], ends: Mapping[int, int]
) -> AsyncGenerator[ConsumerRecord]:
    """Yield the records of all partitions merged by time, each partition in its order."""
    topic = settings.topic_prefix + SIGNATURES.name
    async with AsyncExitStack() as stack:
        heap: list[tuple[int, int, ConsumerRecord, AsyncIterator[ConsumerRecord]]] = []
        for partition, start in starts.items():
            if start < ends[partition]:
                reading = kafka_records.read_range(settings, topic, partition, start, ends[partition])
                await _push(heap, partition, await stack.enter_async_context(aclosing(reading)))
        while heap:
            _, partition, record, records = heapq.heappop(heap)
            yield record
            await _push(heap, partition, records)


async def _push(
    heap: list[tuple[int, int, ConsumerRecord, AsyncIterator[ConsumerRecord]]],
    partition: int,
    records: AsyncIterator[ConsumerRecord],
) -> None:
    record = await anext(records, None)
    if record is not None:
        heapq.heappush(heap, (record.timestamp_ms, partition, record, records))


async def _renew(rebuilding: IndexRebuild) -> None:
    """Renew the lease on the index until cancelled.

    If another rebuild has taken the index, return: every call is refused from then on.
    """
    with suppress(RebuildRefusedError):
        while True:
            await asyncio.sleep(LEASE_SECONDS / 3)
            with suppress(IndexUnavailableError):  # The next attempt is still within the lease.
                await rebuilding.lease.renew()


async def former_families(deployment: Deployment, wait_seconds: float) -> FormerFamilies:
    """Return the families of documents, as the last verdicts on their topic name them.

    Documents that are alone in their families are left out. Without verdicts (`NEARSTREAM_VERDICTS=none`) it is empty.
    """
    settings, topic, scheme = deployment.settings, deployment.topic(VERDICTS), deployment.scheme.name
    found: dict[bytes, tuple[bytes, int, int]] = {}
    for partition, end in (await kafka_offsets.end_offsets(settings, topic, wait_seconds)).items():
        async with aclosing(kafka_records.read_range(settings, topic, partition, 0, end)) as records:
            async for record in records:
                verdict = _verdict(record.value or b"")
                if verdict is not None and verdict.scheme == scheme and verdict.family.ordinal > 1:
                    own = family_id(document_key(verdict.collection, verdict.id), verdict.version, scheme)
                    family, seen_ms = bytes.fromhex(verdict.family.id), to_milliseconds(verdict.family.first_seen)
                    found[bytes.fromhex(own)] = family, seen_ms, verdict.family.ordinal
    most = {family: ordinal for family, _, ordinal in sorted(found.values(), key=lambda former: former[2])}
    founders = {family: (family, seen_ms, 1) for family, seen_ms, _ in found.values()}
    return {own: (*former, most[former[0]]) for own, former in (founders | found).items()}


def _verdict(value: bytes) -> DocumentVerdict | None:
    try:
        event = decode_event(value)
    except InvalidMessageError:
        return None
    return event if isinstance(event, DocumentVerdict) else None


def founder_joins(families: FormerFamilies, own_ids: Mapping[int, bytes], found: Sequence[Matched]) -> list[Join]:
    """Return what gives families their former ids and highest ordinals, and founders their ordinals."""
    joins = []
    for registered, verdict in ((each.registered, each.verdict) for each in found):
        founder = verdict.family.founder if verdict is not None else None
        if verdict is None or founder is None or registered.status not in (Status.NEW, Status.KNOWN):
            continue
        number, is_dead = registered.number, registered.is_dead or registered.is_late
        if own_ids[number] in families and (founder.id, founder.version) == (verdict.id, verdict.version):
            joins.append(Join(number, number, is_dead, True, b"", 0, own_ids[number], 0))
    return joins
