"""The calls of slots as commands of a server, and what its replies say."""

import os
from bisect import bisect_right
from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import accumulate, pairwise
from struct import unpack
from typing import Any, NamedTuple

import numpy as np

from nearstream.streams.store.limits import IndexBehindError, IndexLostError, IndexUnavailableError
from nearstream.streams.store.messages import KEY_BYTES, Entry
from nearstream.streams.store.registration import NUMBER_BYTES
from nearstream.streams.store.store import Call
from nearstream.workers.redis.server.functions import function_name
from nearstream.workers.redis.server.layout import (
    BUCKET_KINDS,
    COVER_FIELD,
    ENTRY_FORMAT,
    EPOCH_BYTES,
    FIELD_BYTES,
    FIELDS,
    FIRST_FIELD,
    HEADER_FORMAT,
    LANE_BYTES,
    NO_LEASE,
    KeyKind,
    StoreLayout,
    python_struct,
)
from nearstream.workers.redis.store import families, states

BUCKETS_CAP = 1_024  # of one command, so that none takes the server for long
_ENTRY = python_struct(ENTRY_FORMAT)
_KEY = np.dtype([("kind", "u1"), ("hash", ">u8")])
_SLOT_BITS, _FIELDS = np.uint64(16), np.uint64(FIELDS)
_POWERS = 10 ** np.arange(FIELD_BYTES - 1, -1, -1, dtype=np.uint64)
_HEADER = python_struct(HEADER_FORMAT)
_MAX_ITEMS = 64  # in one function call, so that none takes the server for long
_WAIT_MS = 2_000
_Packed = tuple[list[bytes], list[bytes]]


def pack_entries(layout: StoreLayout, tag: bytes, batch: Sequence[Entry]) -> _Packed:
    """Return keys and items of a command. A batch may have more entries than fit in.

    The hash of a key without the bits that decide its slot, divided by the fields of a chunk, leaves the field. The
    quotient modulo the chunks of its kind is the chunk. numpy does that for all keys at once, a fifth of the time.
    """
    ends = [0, *accumulate(len(entry.keys) // KEY_BYTES for entry in batch)]
    ends = ends[: max(2, bisect_right(ends, BUCKETS_CAP))]
    keys = np.frombuffer(b"".join([entry.keys for entry in batch[: len(ends) - 1]]), _KEY)
    rest, fields = np.divmod(keys["hash"].astype(np.uint64) >> _SLOT_BITS, _FIELDS)
    chunks = np.ones(256, np.uint64)
    chunks[[kind[0] for kind in BUCKET_KINDS]] = [layout.chunks[kind] for kind in BUCKET_KINDS]
    names = np.empty(keys.size, [("tag", f"V{len(tag)}"), ("kind", "u1"), ("chunk", ">u4")])
    names["tag"], names["kind"], names["chunk"] = np.void(tag), keys["kind"], rest % chunks[keys["kind"]]
    digits = ((fields + FIRST_FIELD)[:, None] // _POWERS % 10 + ord("0")).astype(np.uint8).tobytes()
    items = [
        _ENTRY.pack(_number(entry.number), _number(entry.hint), end - start)
        + digits[FIELD_BYTES * start : FIELD_BYTES * end]
        for entry, (start, end) in zip(batch, pairwise(ends), strict=False)
    ]
    return list(unpack(f"{names.itemsize}s" * keys.size, names.tobytes())), items


def _number(number: int) -> bytes:
    return number.to_bytes(NUMBER_BYTES, "big")


def _unpack_same(_layout: StoreLayout, _item: object, _now_ms: int, answer: Any) -> Any:  # noqa: ANN401 - see _FORMS
    return answer


def _unpack_nothing(_layout: StoreLayout, _item: object, _now_ms: int, _answer: int) -> None:
    """Return no answer."""


# How items of a call are packed, and an answer unpacked. The types are Any, since calls have different ones. The first
# function returns keys and packed items of one command. Further items need another command.
_FORMS: dict[str, tuple[Callable[[StoreLayout, bytes, Sequence[Any]], _Packed], Callable[..., Any]]] = {
    "register": (states.pack_items, states.unpack_registered),
    "enter": (pack_entries, _unpack_same),
    "peek": (pack_entries, _unpack_same),
    "withdraw": (pack_entries, _unpack_nothing),
    "fetch": (states.pack_queries, states.unpack_view),
    "note": (states.pack_notes, states.unpack_noted),
    "shorten": (states.pack_shortened, _unpack_nothing),
    "decide": (states.pack_proposals, states.unpack_decided),
    "join": (families.pack_joins, families.unpack_joined),
    "kept": (families.pack_founders, _unpack_same),
    "leave": (families.pack_leaves, _unpack_same),
    "mark": (families.pack_marks, _unpack_nothing),
    "growth": (families.pack_measures, families.unpack_growth),
    "cover": (families.pack_covers, _unpack_nothing),
}
_READING = ("peek", "fetch", "kept", "growth")
_CONFIRMED = ("decide", "note", "join")  # whose answers count only once the replicas have what was written


class Command(NamedTuple):
    """A command for the server of a slot."""

    call: Call  # the call to which it belongs
    items: Sequence[Any]  # those items of the call that it carries
    arguments: tuple[bytes | str | int, ...]  # the words of the command


class LaneCalls:
    """The calls of one lane.

    A slot counts the writing calls of a lane for each partition, and the lane says how many of these it knows to have
    been made. So a slot that has lost its newest writes is found out by the next call that writes there.
    """

    def __init__(self, layout: StoreLayout, *, replicas: int = 0, lease: bytes = NO_LEASE) -> None:
        self._layout, self._replicas, self._lease = layout, replicas, lease
        self._lane = os.urandom(LANE_BYTES)
        self._acknowledged: dict[tuple[int, int], int] = {}  # by slot and partition

    def confirming(self, calls: Sequence[Call]) -> list[Call]:
        """Return the calls that wait for the replicas of what these calls have written."""
        if not self._replicas:
            return []
        written = {(call.slot, call.partition): call for call in calls if call.name in _CONFIRMED}
        return [call._replace(name="wait", items=[None]) for call in written.values()]

    def commands(self, call: Call, former: Collection[int] = ()) -> Iterator[Command]:
        """Return the commands of a call. A registration declares the keys of former states, too."""
        tag = self._layout.tag(call.slot)
        if call.name == "wait":
            # A server waits for what this connection has written. One that took the place of another may lack what this
            # lane wrote before, so it is asked for that.
            yield Command(call, (), self._function_call(call._replace(name="enter"), tag, (), ()))
            yield Command(call, call.items, ("WAIT", self._replicas, _WAIT_MS))
        elif call.name == "require":
            yield Command(call, call.items, ("HMGET", tag + KeyKind.FACTS, "layout", f"{COVER_FIELD}{call.partition}"))
        else:
            items, (pack, _) = call.items, _FORMS[call.name]
            while items:
                keys, packed = pack(self._layout, tag, items[:_MAX_ITEMS])
                declared = [*states.state_keys(self._layout, tag, former).union(keys)] if former else keys
                yield Command(call, items[: len(packed)], self._function_call(call, tag, declared, packed))
                items = items[len(packed) :]

    def _function_call(
        self, call: Call, tag: bytes, keys: Sequence[bytes], items: Sequence[bytes]
    ) -> tuple[bytes | str | int, ...]:
        layout, partition = self._layout, call.partition or 0
        header = _HEADER.pack(
            layout.epoch,
            self._lease,
            0 if call.partition is None else self._acknowledged.get((call.slot, partition), 0),
            partition,
            layout.shape.partitions,
            layout.retention_ms.to_bytes(6, "big"),
            layout.limits.bucket_cap,
        )
        lane = tag + KeyKind.LANE + self._lane + partition.to_bytes(2, "big")
        head = tag + KeyKind.FACTS, tag + KeyKind.GATE, lane
        command = "FCALL_RO" if call.name in _READING else "FCALL"
        return (command, function_name(call.name), len(head) + len(keys), *head, *keys, header, *items)

    def answers(self, command: Command, reply: Any) -> list[Any]:  # noqa: ANN401 - each command has its own reply
        """Return the answers to the items of a command."""
        call, place = command.call, (command.call.slot, command.call.partition or 0)
        if call.name == "wait" and command.items:
            if reply < self._replicas:
                raise IndexUnavailableError(f"{reply} of {self._replicas} replicas have what was written")
            return list(command.items)
        if call.name == "require":
            return self._required(command, reply)
        if isinstance(reply[0], bytes):
            self._acknowledged.pop(place, None)  # the lane begins again, at what the slot knows
            raise _refusal(reply, place[1])
        if call.name not in _READING:
            self._acknowledged[place] = max(self._acknowledged.get(place, 0), reply[0])
        if call.name == "wait":
            return []
        (_, unpack), layout, now_ms = _FORMS[call.name], self._layout, int(reply[1])
        return [unpack(layout, item, now_ms, answer) for item, answer in zip(command.items, reply[2:], strict=True)]

    def _required(self, command: Command, reply: list[bytes | None]) -> list[None]:
        (required,), (packed, covered) = command.items, reply
        if packed is None or packed[:EPOCH_BYTES] != self._layout.epoch:
            raise _refusal([b"LOST"], required.partition)
        if int(covered or -1) < required.offset:
            raise IndexBehindError(required.partition, int(covered or -1))
        return [None]


def _refusal(reply: Sequence[bytes], partition: int) -> Exception:
    if reply[0] == b"GAP":
        return IndexBehindError(partition, int(reply[1]))
    if reply[0] == b"REBUILDING":
        return IndexUnavailableError("the index is being rebuilt")
    return IndexLostError("the index was emptied or replaced: run `nearstream rebuild`")
