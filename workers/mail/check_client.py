"""Ask the HTTP API about a message, without ever making the message wait for long."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from io import BytesIO
from typing import Annotated

import aiohttp
import msgspec
from msgspec import Meta

from nearstream.workers.config.settings import Settings, SettingsError

ASK_SECONDS = 0.5
_ANSWER_MAX_BYTES = 65_536

log = logging.getLogger(__name__)


class Answer(msgspec.Struct, frozen=True):
    """What a mail server needs of an answer (`schemas.check.CheckAnswer`), also of one by another version of the API.

    Attributes:
        verdict: The verdict.
        count_1h: Copies within the last hour.
        resemblance: How much the message resembles the most similar known one, None if there is none.
    """

    verdict: Annotated[str, Meta(pattern="^[a-z_]{1,32}$")]
    count_1h: Annotated[int, Meta(ge=0)] = 0
    resemblance: Annotated[float, Meta(ge=0, le=1)] | None = None


class NoAnswerError(Exception):
    """The API gave no answer. The message is one line that says why."""


@dataclass
class CheckClient:
    """Asks the API, and logs when it begins to fail and when it answers again.

    Attributes:
        session: A client with the token.
        url: The address of the question.
        failing: Whether the last question got no answer.
    """

    session: aiohttp.ClientSession
    url: str
    failing: bool = field(default=False, init=False)

    async def ask(self, message: BytesIO) -> Answer | None:
        """Return the answer about a message, or None if there is none within `ASK_SECONDS`, for whatever reason."""
        try:
            answer = await self._ask(message)
        except NoAnswerError as error:
            if not self.failing:
                log.warning("no answer from %s, mail passes unmarked: %s", self.url, error)
            self.failing = True
            return None
        if self.failing:
            log.info("%s answers again", self.url)
        self.failing = False
        return answer

    async def _ask(self, message: BytesIO) -> Answer | None:
        try:
            async with (
                asyncio.timeout(ASK_SECONDS),
                self.session.post(self.url, data=message, allow_redirects=False) as response,
            ):
                body = await _read(response)
        except TimeoutError:
            raise NoAnswerError(f"none within {ASK_SECONDS:g} s") from None
        except (aiohttp.ClientError, OSError, ValueError) as error:  # ValueError: what is no HTTP
            raise NoAnswerError(str(error) or type(error).__name__) from None
        if response.status == 400 or response.status == 413:
            return None  # of this message alone nothing can be said
        if response.status != 200:
            raise NoAnswerError(f"status {response.status}")
        try:
            answer = msgspec.json.decode(body, type=Answer)
        except (msgspec.MsgspecError, UnicodeDecodeError):
            raise NoAnswerError("what came is no answer") from None
        return answer if answer.verdict != "unknown" else None


@asynccontextmanager
async def check_client(settings: Settings, collection: str) -> AsyncIterator[CheckClient]:
    """Yield a client for the API at `NEARSTREAM_API`, which asks about messages of one collection.

    The API need not run yet.

    Raises:
        SettingsError: There are several tokens, of which a client cannot know its own.
    """
    headers = {"Content-Type": "message/rfc822", "nearstream-collection": collection}
    if settings.api_token:
        headers["Authorization"] = f"Bearer {_token(settings.api_token)}"
    connector = aiohttp.TCPConnector(limit=0)  # those of the mail server are bounded
    async with aiohttp.ClientSession(headers=headers, connector=connector, auto_decompress=False) as session:
        yield CheckClient(session, f"http://{settings.api}/v1/check")


def _token(setting: str) -> str:
    """Return the only token of a setting, which may say for which collections and rate it is."""
    lines = [line.split() for line in setting.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    if len(lines) != 1:
        raise SettingsError(f"NEARSTREAM_API_TOKEN: expected the one token that a client sends, got {len(lines)}")
    return lines[0][0]


async def _read(response: aiohttp.ClientResponse) -> bytes:
    body = bytearray()
    async for piece in response.content.iter_any():
        body += piece
        if len(body) > _ANSWER_MAX_BYTES:
            raise NoAnswerError(f"expected at most {_ANSWER_MAX_BYTES} bytes")
    return bytes(body)
