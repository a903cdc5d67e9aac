"""The newest decision of each lineage, in Redis."""

from dataclasses import dataclass
from hashlib import blake2b

from nearstream.schemas.codec import decode_decision, encode_decision
from nearstream.schemas.decision import Decision
from nearstream.workers.redis_index.client import Caller, ask

KEPT_SECONDS = 90 * 86_400  # after the fetch that decided was read


@dataclass(frozen=True)
class DecisionStore:
    """Reads and writes decisions.

    Attributes:
        client: A client of the server of the index.
        namespace: First part of every key.
    """

    client: Caller
    namespace: str

    async def read(self, collection: str, lineage: str) -> Decision | None:
        """Return the decision of a lineage, None if there is none.

        Raises:
            IndexUnavailableError: The server does not answer.
        """
        value = await ask(self.client, "GET", self._key(collection, lineage))
        return None if value is None else decode_decision(value)

    async def write(self, decision: Decision, alias: str | None = None) -> None:
        """Store a decision for 90 days in place of the one before, under its lineage or under another name of a page.

        Raises:
            IndexUnavailableError: The server does not answer.
        """
        key = self._key(decision.collection, alias or decision.lineage)
        await ask(self.client, "SET", key, encode_decision(decision), "EX", KEPT_SECONDS)

    async def forget(self, collection: str, lineage: str) -> None:
        """Remove the decision of a lineage.

        Raises:
            IndexUnavailableError: The server does not answer.
        """
        await ask(self.client, "DEL", self._key(collection, lineage))

    def _key(self, collection: str, lineage: str) -> bytes:
        name = blake2b(f"{collection}/{lineage}".encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
        # In a cluster each key has a slot of its own. The user of the index may write keys that begin like this.
        return f"{{{self.namespace}:decision:{name}}}".encode()
