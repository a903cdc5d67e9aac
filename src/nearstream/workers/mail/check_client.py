"""Ask the HTTP API about a message, without ever making the message wait for long."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from io import BytesIO
from typing import Annotated

import msgspec
from msgspec import Meta

from nearstream.workers.asking.api_client import ApiClient, api_client
from nearstream.workers.config.settings import Settings


class Contained(msgspec.Struct, frozen=True):
    """A text with many copies that lies in the message.

    Attributes:
        count_24h: Its copies within the last day.
    """

    count_24h: Annotated[int, Meta(ge=0)]


class Answer(msgspec.Struct, frozen=True):
    """What a mail server needs of an answer (`schemas.check.CheckAnswer`), also of one by another version of the API.

    Attributes:
        verdict: The verdict.
        count_1h: Copies within the last hour.
        resemblance: How much the message resembles the most similar known one, None if there is none.
        contains: A text with many copies that lies in the message, None if there is none.
    """

    verdict: Annotated[str, Meta(pattern="^[a-z_]{1,32}$")]
    count_1h: Annotated[int, Meta(ge=0)] = 0
    resemblance: Annotated[float, Meta(ge=0, le=1)] | None = None
    contains: Contained | None = None


@dataclass(frozen=True)
class CheckClient:
    """Asks the API about messages.

    Attributes:
        client: A client of `/v1/check`.
    """

    client: ApiClient

    async def ask(self, message: BytesIO) -> Answer | None:
        """Return the answer about a message, or None if there is none in time, for whatever reason."""
        answer = await self.client.ask(Answer, "POST", message)
        return answer if answer is not None and answer.verdict != "unknown" else None


@asynccontextmanager
async def check_client(settings: Settings, collection: str) -> AsyncIterator[CheckClient]:
    """Yield a client for the API at `NEARSTREAM_API`, which asks about messages of one collection.

    The API need not run yet.

    Raises:
        SettingsError: There are several tokens, of which a client cannot know its own.
    """
    headers = {"Content-Type": "message/rfc822", "nearstream-collection": collection}
    async with api_client(settings, "/v1/check", "mail passes unmarked", headers) as client:
        yield CheckClient(client)
