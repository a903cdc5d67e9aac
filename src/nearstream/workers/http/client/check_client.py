"""Ask the HTTP API about a message, without ever making the message wait for long."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from io import BytesIO

from nearstream.workers.config.settings import Settings
from nearstream.workers.http.client.api_client import api_client
from nearstream.workers.mail.milter import Answer, Ask


@asynccontextmanager
async def check_client(settings: Settings, collection: str, learns: bool = False) -> AsyncIterator[Ask]:
    """Yield a function that asks the API at `NEARSTREAM_API` about messages of one collection.

    It returns None if there is no answer in time, for whatever reason. The API need not run yet.

    Args:
        settings: Of the deployment.
        collection: Of the messages.
        learns: Whether the API also sends each message to the workers.

    Raises:
        SettingsError: There are several tokens, of which a client cannot know its own.
    """
    headers = {"Content-Type": "message/rfc822", "nearstream-collection": collection}
    path = "/v1/check?learn=1" if learns else "/v1/check"
    async with api_client(settings, path, "mail passes unmarked", headers) as client:

        async def ask(message: BytesIO) -> Answer | None:
            answer = await client.ask(Answer, "POST", message)
            return answer if answer is not None and answer.verdict != "unknown" else None

        yield ask
