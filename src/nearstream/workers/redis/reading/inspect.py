"""What an index stores about one document."""

import asyncio
from dataclasses import dataclass, replace

from nearstream.schemas.documents.signature import Signature
from nearstream.streams.matching.family import FamilyFacts, facts_of
from nearstream.streams.matching.protocol.decision import Decision, Pair, founder_of, unpack_decision
from nearstream.streams.store.limits import WALK
from nearstream.streams.store.messages import Measure, Query
from nearstream.streams.store.record import PATCH, lengthened, unpack_document_key, unpack_signature
from nearstream.streams.store.registration import NUMBER_BYTES
from nearstream.streams.store.store import Position, Store
from nearstream.workers.redis.index.index import RedisIndex
from nearstream.workers.redis.server.client import ask, server_time_ms
from nearstream.workers.redis.server.layout import LINK_SCORE, KeyKind
from nearstream.workers.redis.store.states import State, unpack_state


@dataclass(frozen=True)
class MemberFacts:
    """The place of a state in its family."""

    number: int  # number of the founder
    ordinal: int  # its place in the order of joining, 0 if it has not joined yet
    facts: FamilyFacts | None  # size and growth of the family, None if it has no second member


@dataclass(frozen=True)
class StateFacts:
    """One stored state of a document."""

    number: int  # its number
    position: Position  # the position of its record
    signature: Signature  # as a record keeps it
    registered_at_ms: int  # when the index got it, in milliseconds since 1970
    # The number from which on another state is current, 0 for the current state. One that was observed before the state
    # that was current when it came has its own number here.
    superseded_by: int
    decided: bool  # whether its family and its pairs are decided
    family: MemberFacts | None  # its place in its family, None if it is alone in it as far as that is known
    # The earlier documents that were found related: the best one, and those whose event was sent.
    pairs: tuple[Pair, ...]
    expired: bool  # it can no longer be found, but was not yet deleted
    expires_at_ms: int | None  # The time of its expiry, in milliseconds since 1970. None if it does not expire.
    record_bytes: int  # size of its record

    @property
    def reports(self) -> int:
        """Events that were sent when it arrived."""
        return sum(pair.is_sent for pair in self.pairs)


_Stored = tuple[int, State, bytes, int]  # a number, its state, its whole record, and the bytes of that as it is stored


async def inspect_document(index: RedisIndex, document_key: str, now_ms: int | None = None) -> tuple[StateFacts, ...]:
    """Return the states of a document, the newest first, none of one that the index does not have."""
    chain = await _chain(index, await index.current_number(document_key))
    now_ms = await server_time_ms(index.connection) if now_ms is None else now_ms
    facts, successor = [], 0
    for stored in chain:
        number, state, *_ = stored
        facts.append(_facts_of(index, stored, number if state.is_late else successor, now_ms))
        successor = successor if state.is_late else number
    return tuple(await asyncio.gather(*facts))


async def _chain(index: RedisIndex, number: int) -> list[_Stored]:
    found: list[_Stored] = []
    store = index.store()
    while number and len(found) < WALK:
        layout = index.layout
        tag, group, field = layout.tag(layout.shape.home(number)), layout.group(number), layout.field(number)
        packed, record = await asyncio.gather(
            ask(index.connection, "HGET", tag + KeyKind.STATES + group, field),
            ask(index.connection, "HGET", tag + KeyKind.RECORDS + group, field),
        )
        state = unpack_state(packed) if packed else None
        if state is None or state.kind or record is None:
            break
        whole = await _whole(store, state, record)
        if whole is None:
            break
        found.append((number, state, whole, len(record)))
        number = state.before
    return found


async def _whole(store: Store, state: State, record: bytes) -> bytes | None:
    """Return a record that may be a patch, None if what it needs has expired."""
    if not record.startswith(PATCH) or state.decision is None:
        return record
    founder = founder_of(state.decision)
    kept = await store.kept([founder])
    return lengthened(record, kept[founder]) if founder in kept else None


async def _facts_of(index: RedisIndex, stored: _Stored, successor: int, now_ms: int) -> StateFacts:
    number, state, record, size = stored
    row, partition = divmod(number, index.layout.shape.partitions)
    retention_ms = index.layout.retention_ms
    expires_at_ms = state.born_ms + retention_ms if retention_ms else None
    decision = unpack_decision(state.decision) if state.decision is not None else None
    return StateFacts(
        number=number,
        position=Position(partition, row - 1),
        signature=unpack_signature(record, index.address.scheme, state.order.version, state.order.observed_ms),
        registered_at_ms=state.born_ms,
        superseded_by=successor,
        decided=decision is not None,
        family=await _member(index, number, decision.founder, now_ms) if decision else None,
        pairs=await _pairs(index, number, decision) if decision else (),
        expired=expires_at_ms is not None and expires_at_ms < now_ms,
        expires_at_ms=expires_at_ms,
        record_bytes=size,
    )


async def _member(index: RedisIndex, number: int, founder: int, now_ms: int) -> MemberFacts | None:
    """Return the place of a state in its family, None if it has founded one that nobody else has joined."""
    store = index.store()
    (growth,) = await store.growth([Measure(founder, now_ms)])
    (view,) = await store.fetch([Query(founder, number, record=True)])
    has_others = growth is not None and bool(growth.joins)
    if founder == number and not has_others:
        return None
    ordinal = view.family.ordinal if view is not None and view.family is not None else 0
    if growth is None or not has_others:
        return MemberFacts(founder, ordinal, None)
    name = unpack_document_key(view.record) if view is not None and view.record is not None else ""
    return MemberFacts(founder, ordinal, replace(facts_of(growth), founder=name))


async def _pairs(index: RedisIndex, number: int, decision: Decision) -> tuple[Pair, ...]:
    """Return the related documents that were decided with a state, with whether their events were sent.

    Of those whose event only one member of the family sends, the family remembers who that is.
    """
    layout, links = index.layout, decision.links
    founder = decision.founder.to_bytes(NUMBER_BYTES, "big")
    members = layout.tag(layout.shape.home(decision.founder)) + KeyKind.MEMBERS + founder
    scores = await asyncio.gather(*(ask(index.connection, "ZSCORE", members, pair.link) for pair in links))
    others = {
        pair.number for pair, score in zip(links, scores, strict=True) if score and float(score) != LINK_SCORE + number
    }
    return tuple(pair._replace(is_sent=pair.is_sent and pair.number not in others) for pair in decision.pairs)
