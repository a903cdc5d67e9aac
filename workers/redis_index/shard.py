"""One shard of an index, which occupies one slot of the server."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from nearstream.streams.index.candidate import Candidate, in_order
from nearstream.streams.index.contract import (
    Admission,
    Admitted,
    IndexBehindError,
    IndexLostError,
    IndexState,
    Position,
)
from nearstream.streams.index.details import FamilyDetails
from nearstream.streams.index.family import Settled, Settlement
from nearstream.streams.index.labels import LabelCounts
from nearstream.streams.signing.scheme import Keys
from nearstream.workers.redis_index.address import IndexAddress
from nearstream.workers.redis_index.client import Caller, Client, ask, call
from nearstream.workers.redis_index.errors import IndexReadOnlyError, errors_mapped
from nearstream.workers.redis_index.layout import CHECKPOINT_FIELD, MAX_KEYS, IndexLayout, KeyKind
from nearstream.workers.redis_index.protocol import (
    pack_items,
    pack_keys,
    unpack_answers,
    unpack_records,
)
from nearstream.workers.redis_index.settling import StoredState, pack_settlement, unpack_candidates, unpack_settled
from nearstream.workers.redis_index.values import number_bytes

_WRITE_SECONDS = 2.0
_MAX_ADMISSIONS = 32  # in one call
_MAX_SETTLEMENTS = 64  # in one call


@dataclass(frozen=True)
class StoredFamily:
    """A family as the server stores it.

    Attributes:
        number: Number of the state that founded it.
        facts: Its facts in bytes. Empty: it has no second member.
        now_ms: Time of the server in milliseconds since 1970.
        founder: The founder of a family without facts. None: it was removed or has expired, or there are facts.
    """

    number: int
    facts: bytes
    now_ms: int
    founder: StoredState | None


@dataclass(frozen=True)
class Neighbours:
    """What a look-up finds.

    Attributes:
        candidates: The neighbours.
        families: The family of each of them, by its number.
        may_have_details: Some document of the index has had a label, a sender or recipients.
    """

    candidates: Sequence[Candidate]
    families: Mapping[int, StoredFamily]
    may_have_details: bool = False


Item = Admission | Position  # a bare position moves the checkpoint past a record without a document in this shard


class Shard:
    """The documents of some collections, or of all."""

    def __init__(
        self, client: Client, address: IndexAddress, key: bytes, layout: IndexLayout, asking: Caller | None = None
    ) -> None:
        """Take an open client, the key of the shard's facts, the shard's layout, and another way to send calls."""
        self.client = client
        self._asking = asking or client
        self.key = key
        self.layout = layout
        self.lease = b""  # of a rebuild by this client
        self._address = address
        self._trouble: IndexState | None = None

    @property
    def tag(self) -> bytes:
        """The hash tag, with which all keys of the shard begin."""
        return self.key.removesuffix(KeyKind.FACTS)

    async def admit(self, batch: Sequence[Item], now_ms: int | None = None) -> list[Admitted]:
        """Add each document and return the answers to the admissions of the batch.

        Raises:
            IndexUnavailableError: The server does not answer. Wait, then repeat the batch.
            IndexBehindError: The index has lost its newest writes of a partition.
            IndexLostError: The index was emptied.
        """
        head = (*self._limits(self._address.limits.candidates), "" if now_ms is None else now_ms)
        answers: list[Admitted] = []
        done = 0
        while done < len(batch):
            items = _one_call(batch, done)
            reply = await self._write("admit", *head, *pack_items(items, self.layout))
            answers += unpack_answers(items, reply[1], unpack_records(reply[2], self._address.scheme))
            done += len(reply[1])
        return answers

    async def enter(self, batch: Sequence[tuple[int, Admission]]) -> list[tuple[Candidate, ...]]:
        """Add states, given by number, to the buckets that they left out.

        The answer names the later documents in those buckets.

        Raises:
            IndexUnavailableError: The server does not answer. Wait, then admit the batch again.
            IndexLostError: The index was emptied.
        """
        limits = self._limits(self._address.limits.candidates)
        numbers, admissions = [number_bytes(number) for number, _ in batch], [admission for _, admission in batch]
        found: list[tuple[Candidate, ...]] = []
        while len(found) < len(batch):
            some = _one_call(admissions, len(found))
            packed = pack_items(some, self.layout)
            numbered = [part for pair in zip(numbers[len(found) :], packed, strict=False) for part in pair]
            reply = await self._write("enter", *limits, *numbered)
            states = unpack_records(reply[2], self._address.scheme)
            found += [in_order(unpack_candidates(answer, states.__getitem__)) for answer in reply[1]]
        return found

    async def settle(self, batch: Sequence[Settlement], now_ms: int | None = None) -> list[Settled]:
        """Record decisions before their verdicts and events are sent.

        Raises:
            IndexUnavailableError: The server does not answer. Wait, then admit the batch again.
            IndexLostError: The index was emptied.
        """
        head = (self._retention_ms, self._address.limits.events_per_family, "" if now_ms is None else now_ms)
        settled: list[Settled] = []
        for first in range(0, len(batch), _MAX_SETTLEMENTS):
            some = batch[first : first + _MAX_SETTLEMENTS]
            reply = await self._write("settle", *head, *map(pack_settlement, some))
            states = unpack_records(reply[2], self._address.scheme)
            settled += [unpack_settled(answer, one, states.get) for answer, one in zip(reply[1], some, strict=True)]
        return settled

    async def look_up(self, keys: Keys, limit: int, now_ms: int | None = None) -> Neighbours:
        """Return up to `limit` neighbours of some keys with their families, even while writes are refused.

        Raises:
            IndexUnavailableError: No answer within `look_up_seconds` of the address.
            IndexLostError: The index was emptied.
        """
        head = (*self._limits(limit), "" if now_ms is None else now_ms)
        _, packed, records, server_ms, found, detailed = await self._ask("look_up", *head, pack_keys(keys, self.layout))
        states = unpack_records(records, self._address.scheme)
        (answer,) = unpack_answers([Admission("", None, keys)], [packed], states)
        families = {
            number: StoredFamily(founder, facts, int(server_ms), None if facts else states.get(founder))
            for number, founder, facts in zip(found[::3], found[1::3], found[2::3], strict=True)
        }
        return Neighbours(answer.candidates[:limit], families, bool(detailed))

    async def details(self, number: int, delay_ms: int = 0, now_ms: int | None = None) -> FamilyDetails:
        """Return the details of the family of a state. Labels count from the age `delay_ms` on.

        Raises:
            IndexUnavailableError: No answer within `look_up_seconds` of the address.
            IndexLostError: The index was emptied.
        """
        head = (self._retention_ms, "" if now_ms is None else now_ms)
        _, spam, ham, senders, recipients = await self._ask("details", *head, number_bytes(number), delay_ms)
        return FamilyDetails(LabelCounts(spam, ham), senders, recipients)

    async def state(self) -> IndexState:
        """Return whether this shard can be trusted now.

        LOST and REBUILDING are what the server says, the other states what the last write has found.

        Raises:
            IndexUnavailableError: The server does not answer.
        """
        status = (await self._reply(_WRITE_SECONDS, "state"))[0]
        return {b"LOST": IndexState.LOST, b"REBUILDING": IndexState.REBUILDING}.get(
            status, self._trouble or IndexState.READY
        )

    async def require_ready(self) -> None:
        """Require that this shard can be trusted now.

        Raises:
            IndexUnavailableError: The server does not answer.
            IndexLostError: The index was emptied or is being rebuilt.
        """
        await self._call(_WRITE_SECONDS, "state")

    async def facts(self) -> dict[bytes, bytes]:
        """Return the facts of the shard, as the server stores them.

        Raises:
            IndexUnavailableError: The server does not answer.
        """
        with errors_mapped():
            async with asyncio.timeout(_WRITE_SECONDS):
                found: dict[bytes, bytes] = await ask(self.client, "HGETALL", self.key)
                return found

    async def checkpoints(self) -> dict[int, int]:
        """Return the last offset admitted, by partition.

        Raises:
            IndexUnavailableError: The server does not answer.
        """
        prefix = CHECKPOINT_FIELD.encode()
        facts = await self.facts()
        return {int(name[len(prefix) :]): int(value) for name, value in facts.items() if name.startswith(prefix)}

    def _limits(self, candidates: int) -> tuple[int, int, int, int]:
        limits = self._address.limits
        return limits.bucket_cap, candidates, self._retention_ms, limits.events_per_family

    @property
    def _retention_ms(self) -> int:
        return self._address.limits.retention_seconds * 1000

    async def _write(self, name: str, *arguments: bytes | str | int) -> list[Any]:
        try:
            reply = await self._call(_WRITE_SECONDS, name, *arguments)
        except IndexReadOnlyError:
            self._trouble = IndexState.READ_ONLY
            raise
        except IndexBehindError:
            self._trouble = IndexState.BEHIND
            raise
        self._trouble = None
        return reply

    async def _ask(self, name: str, *arguments: bytes | str | int) -> list[Any]:
        seconds = self._address.look_up_seconds
        return self._accepted(await self._reply(seconds, name, *arguments, caller=self._asking))

    async def _call(self, seconds: float, name: str, *arguments: bytes | str | int) -> list[Any]:
        return self._accepted(await self._reply(seconds, name, *arguments))

    def _accepted(self, reply: list[Any]) -> list[Any]:
        if reply[0] == b"GAP":
            raise IndexBehindError(reply[1], reply[2])
        if reply[0] != b"OK":
            raise IndexLostError(
                f"the index of {self._address.scheme} in {self._address.namespace} {_advice(reply[0])}"
            )
        return reply

    async def _reply(
        self, seconds: float, name: str, *arguments: bytes | str | int, caller: Caller | None = None
    ) -> list[Any]:
        with errors_mapped():
            async with asyncio.timeout(seconds):
                return await call(caller or self.client, name, self.key, self.layout.epoch + self.lease, *arguments)


def _advice(status: bytes) -> str:
    if status == b"REBUILDING":
        return "is being rebuilt: matching continues after that; if the rebuild was cut off, run `nearstream rebuild`"
    return "is lost: run `nearstream rebuild`, after which matching continues by itself"


def _one_call(batch: Sequence[Item], first: int) -> Sequence[Item]:
    """Return the items from `first` on that one call may have."""
    keys = 0
    for end in range(first, min(first + _MAX_ADMISSIONS, len(batch))):
        item = batch[end]
        keys += 2 + len(item.keys.bands) + len(item.keys.anchors) if isinstance(item, Admission) else 0
        if keys >= MAX_KEYS:
            return batch[first : end + 1]
    return batch[first : first + _MAX_ADMISSIONS]
