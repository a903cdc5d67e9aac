"""The HTTP API in this process, over an index of its own."""

import secrets
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, nullcontext
from dataclasses import dataclass, field
from itertools import count

import aiohttp
from yarl import URL

from nearstream.schemas.documents.document import DEFAULT_COLLECTION, Document, from_milliseconds
from nearstream.schemas.documents.signature import Signature
from nearstream.streams.matching.arriving import Arrival
from nearstream.streams.store.store import Position
from nearstream.workers.config.settings import load
from nearstream.workers.http.learning import Outbox, connected
from nearstream.workers.http.live.feed import Feed
from nearstream.workers.http.requests import Gate
from nearstream.workers.http.server import serving, shared
from nearstream.workers.kafka.partitioning import partition_of
from nearstream.workers.kafka.records import KeptSender
from nearstream.workers.pipeline.deployment import Deployment
from nearstream.workers.redis.index.index import RedisIndex

START_MS = 1_760_000_000_000
PARTITIONS = 6
PATIENT_SECONDS = 60.0  # which a busy machine does not take for an answer
HASTY_SECONDS = 0.15  # as in production, for tests in which no answer comes


@dataclass(frozen=True)
class Api:
    """A running API with the index that it reads."""

    deployment: Deployment  # its deployment
    index: RedisIndex  # its index, opened to be written
    address: str  # `host:port` of the API
    session: aiohttp.ClientSession  # a client, which has the token
    feed: Feed  # the events of its live page
    offsets: Iterator[int] = field(default_factory=count)  # those of the next records of `signatures`

    async def admit(self, name: str, text: str, collection: str = DEFAULT_COLLECTION) -> None:
        """Add a document to the index, as a worker does."""
        document = Document(id=name, text=text, observed_at=from_milliseconds(START_MS), collection=collection)
        await self.match(self.deployment.signer().sign(document))

    async def match(self, signature: Signature) -> None:
        """Add the document of a signature to the index."""
        key = signature.document_key
        position = Position(partition_of(key.encode(), PARTITIONS), next(self.offsets))
        await self.deployment.matcher(self.index.store()).match_all([Arrival(key, signature, position)])

    async def ask(self, text: str | bytes, **headers: str) -> tuple[int, dict[str, object]]:
        """Post a text and return the status with the answer."""
        named = {"Content-Type": "text/plain", **{name.replace("_", "-"): value for name, value in headers.items()}}
        return await self.send("POST", "/v1/check", text, **named)

    async def send(
        self, method: str, path: str, body: str | bytes = b"", **headers: str
    ) -> tuple[int, dict[str, object]]:
        """Send a request to a path, which is percent-encoded already, and return the status with the answer."""
        url = URL(f"http://{self.address}{path}", encoded=True)
        async with self.session.request(method, url, data=body, headers=headers) as response:
            return response.status, await response.json()

    async def get(self, path: str) -> tuple[int, bytes]:
        """Return the status and body of a path."""
        async with self.session.get(f"http://{self.address}{path}") as response:
            return response.status, await response.read()


@asynccontextmanager
async def served(redis_url: str, **settings: str) -> AsyncIterator[Api]:
    """Serve the API over a new index for the block. It waits for `PATIENT_SECONDS`, unless it is told otherwise."""
    own = {"redis": redis_url, "namespace": f"api-{secrets.token_hex(6)}", "api": "127.0.0.1:0"}
    given = {**own, "api_seconds": str(PATIENT_SECONDS), **settings}
    deployment = Deployment.of(load({f"NEARSTREAM_{name.upper()}": value for name, value in given.items()}))
    index = await RedisIndex.open(deployment.index_address(), partitions=PARTITIONS, may_create=True)
    reading = await RedisIndex.open_to_read(deployment.index_address())
    token = given.get("api_token")
    feed = Feed(lambda: START_MS)
    outgoing = connected(deployment.settings) if "kafka" in settings else nullcontext(Outbox(KeptSender()))
    try:
        async with (
            outgoing as outbox,
            serving(
                deployment, shared(deployment, reading, outbox, feed), feed, Gate(deployment.settings.api_token)
            ) as address,
            aiohttp.ClientSession(
                headers={"Authorization": f"Bearer {token}"} if token else {},
                timeout=aiohttp.ClientTimeout(2 * PATIENT_SECONDS),
                connector=aiohttp.TCPConnector(limit=0),
            ) as session,
        ):
            yield Api(deployment, index, address, session, feed)
    finally:
        await reading.close()
        await index.close()
