"""Ask the HTTP API of nearstream, and never wait long for an answer."""

import asyncio
import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from dataclasses import dataclass, field
from io import BytesIO
from typing import TypeVar

import aiohttp
import msgspec

from nearstream.workers.config.settings import Settings, SettingsError
from nearstream.workers.mail.milter import Answer as MailAnswer
from nearstream.workers.mail.milter import Ask

_WAY_SECONDS = 0.35  # beyond what the API may take for an answer
_BYTES_PER_SECOND = 48 * 1024 * 1024  # of a message, which is sent, split and hashed
_ANSWER_MAX_BYTES = 65_536
_AT_ONCE, _SHORT_BYTES = 8, 1024 * 1024  # questions of this size that are sent at a time
_LEFT_SECONDS = 0.08  # in which most answers come once a question is sent

log = logging.getLogger(__name__)

Answer = TypeVar("Answer")


@dataclass
class ApiClient:
    """Asks the API, and logs when it begins to fail and when it answers again."""

    session: aiohttp.ClientSession  # a client with the token
    url: str  # the address of the question
    without: str  # what happens without an answer, for the log
    seconds: float  # how long an answer is waited for, and longer if a message is large
    token: str  # The token that goes with every question. Empty: none.
    # Turns of short questions. The time that the API has for an answer begins when a question is sent.
    turns: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(_AT_ONCE), init=False)
    failing: bool = field(default=False, init=False)  # whether the last question got no answer

    async def ask(
        self,
        kind: type[Answer],
        method: str = "GET",
        data: BytesIO | None = None,
        query: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Answer | None:
        """Return the answer to a question, or None without one in time.

        An answer that comes too late and all other failures count as none. Fields that `kind` does not have are left
        out.
        """
        own = {**(headers or {}), "Authorization": f"Bearer {self.token}"} if self.token else headers
        sending = self.session.request(method, self.url, data=data, params=query, headers=own, allow_redirects=False)
        size = data.getbuffer().nbytes if data else 0
        turn = self._turn() if size <= _SHORT_BYTES else nullcontext()
        try:
            answer = await self._ask(kind, turn, sending, self.seconds + size / _BYTES_PER_SECOND)
        except ConnectionError as error:
            if not self.failing:
                log.warning("no answer from %s, %s: %s", self.url, self.without, error)
            self.failing = True
            return None
        if self.failing:
            log.info("%s answers again", self.url)
        self.failing = False
        return answer

    @asynccontextmanager
    async def _turn(self) -> AsyncIterator[None]:
        """Wait for a turn as long as there is time for an answer after it, and have the turn during the block."""
        async with asyncio.timeout(self.seconds - _LEFT_SECONDS):
            await self.turns.acquire()
        try:
            yield
        finally:
            self.turns.release()

    async def _ask(
        self,
        kind: type[Answer],
        turn: AbstractAsyncContextManager[None],
        sending: AbstractAsyncContextManager[aiohttp.ClientResponse],
        seconds: float,
    ) -> Answer | None:
        """Return an answer, or raise ConnectionError with a message that says in one line why there is none."""
        try:
            async with asyncio.timeout(seconds), turn, sending as response:
                status, body = response.status, await _read(response)
        except TimeoutError:
            raise ConnectionError(f"none within {seconds:.2g} s") from None
        except (aiohttp.ClientError, OSError, ValueError) as error:  # ValueError: what is no HTTP
            raise ConnectionError(str(error) or type(error).__name__) from None
        if status == 400 or status == 413:
            return None  # The API works, but cannot answer this question.
        if status != 200:
            raise ConnectionError(f"status {status}")
        try:
            return msgspec.json.decode(body, type=kind)
        except (msgspec.MsgspecError, UnicodeDecodeError):
            raise ConnectionError("what came is no answer") from None


@asynccontextmanager
async def api_client(
    settings: Settings,
    path: str,
    without: str,
    headers: Mapping[str, str] | None = None,
    seconds: float | None = None,
) -> AsyncIterator[ApiClient]:
    """Yield a client for the API at `NEARSTREAM_API`, which need not run yet.

    The log says what happens without an answer, for which the client waits a little longer than the API may take,
    unless told otherwise. The headers go with every question, as does the one token in the settings.
    """
    token, url = only_token(settings), f"http://{settings.api}{path}"
    connector = aiohttp.TCPConnector(limit=0)  # The caller bounds the number of its questions.
    async with aiohttp.ClientSession(headers=headers, connector=connector, auto_decompress=False) as session:
        yield ApiClient(session, url, without, seconds or ask_seconds(settings), token)


@asynccontextmanager
async def mail_client(
    settings: Settings, collection: str, learns: bool = False
) -> AsyncIterator[tuple[Ask, ApiClient]]:
    """Yield a function that asks the API about messages of one collection, and its client.

    It never lets a message wait for long, and returns None if there is no answer in time, for whatever reason. With
    `learns` the API also sends each message to the workers.
    """
    headers = {"Content-Type": "message/rfc822", "nearstream-collection": collection}
    path = "/v1/check?learn=1" if learns else "/v1/check"
    async with api_client(settings, path, "mail passes unmarked", headers) as client:

        async def ask(message: BytesIO, recipient: str) -> MailAnswer | None:
            answer = await client.ask(MailAnswer, "POST", message, headers={"nearstream-recipient": recipient})
            return answer if answer is not None and answer.verdict != "unknown" else None

        yield ask, client


def ask_seconds(settings: Settings) -> float:
    """Return how long an answer is waited for by default, half a second unless the settings say otherwise."""
    return settings.api_seconds + _WAY_SECONDS


def only_token(settings: Settings) -> str:
    """Return the token that a client sends, without its collections and rate, or an empty text."""
    lines = [each.split() for each in settings.api_token.splitlines() if each.strip() and each.lstrip()[0] != "#"]
    if not settings.api_token:
        return ""
    if len(lines) != 1:
        raise SettingsError(f"NEARSTREAM_API_TOKEN: expected the one token that a client sends, got {len(lines)}")
    return lines[0][0]


async def _read(response: aiohttp.ClientResponse) -> bytes:
    body = bytearray()
    async for piece in response.content.iter_any():
        body += piece
        if len(body) > _ANSWER_MAX_BYTES:
            raise ConnectionError(f"expected at most {_ANSWER_MAX_BYTES} bytes")
    return bytes(body)
