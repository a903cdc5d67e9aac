"""One part of an index: what lies in one slot of the server."""

import asyncio
from collections.abc import Sequence
from typing import Any

from streams.index import (
    Admission,
    Admitted,
    Candidate,
    IndexBehindError,
    IndexLostError,
    IndexState,
    Position,
    Report,
)
from streams.scheme import Keys
from workers.redis_address import IndexAddress, Layout
from workers.redis_calls import Client, IndexReadOnlyError, ask, call, errors_mapped
from workers.redis_reply import pack_items, pack_keys, pack_report, unpack_answers, unpack_records

_WRITE_SECONDS = 2.0
_LOOK_UP_SECONDS = 0.15
_MOST_ADMISSIONS = 32
_MOST_KEYS = 1_024  # the server stops after the document that reaches this
_MOST_REPORTS = 256

Item = Admission | Position  # a position alone moves the checkpoint, where no document stands


class Part:
    """Documents of some collections, or of all."""

    def __init__(self, client: Client, address: IndexAddress, key: bytes, layout: Layout) -> None:
        """Takes an open client, the key of the part's facts and what these say."""
        self.client = client
        self.key = key
        self.layout = layout
        self.lease = b""  # of a rebuild
        self._address = address
        self._trouble: IndexState | None = None

    @property
    def tag(self) -> bytes:
        """What all keys of the part begin with."""
        return self.key[:-1]

    async def admit(self, batch: Sequence[Item], now_ms: int | None = None) -> list[Admitted]:
        """Answers to the admissions of the batch.

        Raises:
            IndexUnavailableError: Wait, then send the same batch again.
            IndexBehindError: The index lost its newest writes.
            IndexLostError: The index was emptied.
        """
        limits = self._address.limits
        head = (limits.bucket_cap, limits.candidates, self._retention_ms, "" if now_ms is None else now_ms)
        answers: list[Admitted] = []
        done = 0
        while done < len(batch):
            part = _one_call(batch, done)
            reply = await self._write("admit", *head, *pack_items(part, self.layout))
            answers += unpack_answers(part, reply[1], unpack_records(reply[2], self._address.scheme))
            done += len(reply[1])
        return answers

    async def report(self, pairs: Sequence[Report]) -> list[bool]:
        """Notes events before they leave; False: a document was removed or expired meanwhile.

        Raises:
            IndexUnavailableError: Wait, then send the same pairs again.
            IndexLostError: The index was emptied.
        """
        noted: list[bool] = []
        for first in range(0, len(pairs), _MOST_REPORTS):
            packed = map(pack_report, pairs[first : first + _MOST_REPORTS])
            reply = await self._write("report", self._retention_ms, *packed)
            noted += [byte == ord("1") for byte in reply[1]]
        return noted

    async def look_up(self, keys: Keys, limit: int, now_ms: int | None = None) -> Sequence[Candidate]:
        """Answers up to `limit` neighbours of these keys; works while writes are refused.

        Raises:
            IndexUnavailableError: No answer within 150 ms.
            IndexLostError: The index was emptied.
        """
        head = (self._address.limits.bucket_cap, limit, self._retention_ms, "" if now_ms is None else now_ms)
        reply = await self._call(_LOOK_UP_SECONDS, "look_up", *head, pack_keys(keys, self.layout))
        states = unpack_records(reply[2], self._address.scheme)
        nobody = Admission("", None, keys)
        (answer,) = unpack_answers([nobody], reply[1:2], states)
        return answer.candidates[:limit]

    async def state(self) -> IndexState:
        """Whether this part can be trusted now, as the server says, else as the last write met it.

        Raises:
            IndexUnavailableError: The server does not answer.
        """
        status = (await self._reply(_WRITE_SECONDS, "state"))[0]
        return {b"LOST": IndexState.LOST, b"REBUILDING": IndexState.REBUILDING}.get(
            status, self._trouble or IndexState.READY
        )

    async def require_ready(self) -> None:
        """Returns if this part can be trusted now.

        Raises:
            IndexUnavailableError: The server does not answer.
            IndexLostError: The index was emptied, or is being rebuilt.
        """
        await self._call(_WRITE_SECONDS, "state")

    async def facts(self) -> dict[bytes, bytes]:
        """What the part says of itself.

        Raises:
            IndexUnavailableError: The server does not answer.
        """
        with errors_mapped():
            async with asyncio.timeout(_WRITE_SECONDS):
                found: dict[bytes, bytes] = await ask(self.client, "HGETALL", self.key)
                return found

    async def checkpoints(self) -> dict[int, int]:
        """Last offset admitted, by partition.

        Raises:
            IndexUnavailableError: The server does not answer.
        """
        return {int(name[1:]): int(value) for name, value in (await self.facts()).items() if name[:1] == b"o"}

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

    async def _call(self, seconds: float, name: str, *arguments: bytes | str | int) -> list[Any]:
        reply = await self._reply(seconds, name, *arguments)
        if reply[0] == b"GAP":
            raise IndexBehindError(reply[1], reply[2])
        if reply[0] != b"OK":
            raise IndexLostError(
                f"the index of {self._address.scheme} in {self._address.namespace} {_advice(reply[0])}"
            )
        return reply

    async def _reply(self, seconds: float, name: str, *arguments: bytes | str | int) -> list[Any]:
        with errors_mapped():
            async with asyncio.timeout(seconds):
                return await call(self.client, name, self.key, self.layout.epoch + self.lease, *arguments)


def _advice(status: bytes) -> str:
    if status == b"REBUILDING":
        return "is being rebuilt: matching goes on when that is done; if it was cut off, run `nearstream rebuild` again"
    return "is lost: run `nearstream rebuild`, matching then goes on by itself"


def _one_call(batch: Sequence[Item], first: int) -> Sequence[Item]:
    """The items from `first` on that one call is allowed to bring."""
    keys = 0
    for end in range(first, min(first + _MOST_ADMISSIONS, len(batch))):
        item = batch[end]
        keys += 2 + len(item.keys.bands) + len(item.keys.anchors) if isinstance(item, Admission) else 0
        if keys >= _MOST_KEYS:
            return batch[first : end + 1]
    return batch[first : first + _MOST_ADMISSIONS]
