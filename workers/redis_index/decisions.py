"""The newest decision of each lineage, and what is known of the frame of each host, in Redis."""

from dataclasses import dataclass
from hashlib import blake2b

import msgspec

from nearstream.schemas.codec import decode_decision, encode_decision
from nearstream.schemas.decision import Decision
from nearstream.streams.deciding import PageState
from nearstream.streams.estimates.frames import Frame
from nearstream.workers.redis_index.client import Caller, ask

KEPT_SECONDS = 90 * 86_400  # after the fetch that decided was read
_BEFORE_PARTS = b"\n"  # ends the JSON of a decision
_FRAME = "frame\n"  # before a host; no lineage has a control character


@dataclass(frozen=True)
class DecisionStore:
    """Reads and writes decisions and frames.

    Attributes:
        client: A client of the server of the index.
        namespace: First part of every key.
    """

    client: Caller
    namespace: str

    async def read(self, collection: str, lineage: str) -> Decision | None:
        """Return the decision of a lineage, or None if it has no decision.

        Raises:
            IndexUnavailableError: The server does not answer.
        """
        state = await self.read_state(collection, lineage)
        return None if state is None else state.decision

    async def read_state(self, collection: str, lineage: str) -> PageState | None:
        """Return the decision of a lineage with the parts of its page, or None if it has no decision.

        Raises:
            IndexUnavailableError: The server does not answer.
        """
        value = await ask(self.client, "GET", self._key(collection, lineage))
        if value is None:
            return None
        decision, _, parts = value.partition(_BEFORE_PARTS)
        return PageState(decode_decision(decision), parts)

    async def write(self, state: PageState) -> None:
        """Store a decision with the parts of its page, for 90 days, in place of the one before.

        Raises:
            IndexUnavailableError: The server does not answer.
        """
        decision = state.decision
        value = encode_decision(decision) + _BEFORE_PARTS + state.parts
        await ask(self.client, "SET", self._key(decision.collection, decision.lineage), value, "EX", KEPT_SECONDS)

    async def write_alias(self, decision: Decision, alias: str) -> None:
        """Store a decision under another name of its page, for 90 days.

        Raises:
            IndexUnavailableError: The server does not answer.
        """
        key = self._key(decision.collection, alias)
        await ask(self.client, "SET", key, encode_decision(decision), "EX", KEPT_SECONDS)

    async def forget(self, collection: str, lineage: str) -> None:
        """Remove the decision of a lineage.

        Raises:
            IndexUnavailableError: The server does not answer.
        """
        await ask(self.client, "DEL", self._key(collection, lineage))

    async def read_frame(self, collection: str, host: str) -> Frame:
        """Return what is known of the frame of a host.

        Raises:
            IndexUnavailableError: The server does not answer.
        """
        value = await ask(self.client, "GET", self._key(collection, _FRAME + host))
        return {} if value is None else msgspec.msgpack.decode(value, type=Frame)

    async def write_frame(self, collection: str, host: str, frame: Frame) -> None:
        """Store what is known of the frame of a host, for 90 days.

        Of two workers that store it at one moment one is lost. Later fetches make up for it.

        Raises:
            IndexUnavailableError: The server does not answer.
        """
        key = self._key(collection, _FRAME + host)
        await ask(self.client, "SET", key, msgspec.msgpack.encode(frame), "EX", KEPT_SECONDS)

    def _key(self, collection: str, name: str) -> bytes:
        digest = blake2b(f"{collection}/{name}".encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
        # In a cluster each key has a slot of its own. The user of the index may write keys that begin like this.
        return f"{{{self.namespace}:decision:{digest}}}".encode()
