"""Ask the HTTP API about a message, without ever making the message wait for long."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from io import BytesIO

from nearstream.workers.config.settings import Settings
from nearstream.workers.http.client.api_client import api_client
from nearstream.workers.mail.milter import Answer, Ask


@asynccontextmanager
async def check_client(settings: Settings, collection: str) -> AsyncIterator[Ask]:
    """Yield a function that asks the API at `NEARSTREAM_API` about messages of one collection.

    It returns None if there is no answer in time, for whatever reason. The API need not run yet.

    Raises:
        SettingsError: There are several tokens, of which a client cannot know its own.
    """
    headers = {"Content-Type": "message/rfc822", "nearstream-collection": collection}
    async with api_client(settings, "/v1/check", "mail passes unmarked", headers) as client:

        async def ask(message: BytesIO) -> Answer | None:
            answer = await client.ask(Answer, "POST", message)
            return answer if answer is not None and answer.verdict != "unknown" else None

        yield ask
