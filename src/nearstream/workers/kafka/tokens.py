"""Get tokens for Kafka from a file, an OIDC provider or AWS.

They are for the mechanism OAUTHBEARER of SASL.

A token is fetched when a connection is made, and given to further connections for four fifths of its life. A broker
that limits a connection to the life of its token closes it then, and the client connects again with a new token.
"""

import asyncio
import re
from base64 import b64encode
from collections.abc import Awaitable, Callable
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from time import monotonic, time
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, quote_plus

import msgspec
from aiokafka.abc import AbstractTokenProvider
from aiokafka.conn import AIOKafkaConnection, OAuthAuthenticator

from nearstream.workers.config.settings import PREFIX, Settings, SettingsError
from nearstream.workers.kafka.errors import TokenRefusedError, TokenUnavailableError

if TYPE_CHECKING:
    import aiohttp

_MAX_BYTES = 64 * 1024
_USED_SHARE = 0.8  # of the life of a token
_ANSWER_SECONDS = 10.0
_BUSY = (408, 429)
_URL_VARIABLE = f"{PREFIX}KAFKA_TOKEN_URL"
_KVSEP = b"\x01"


Token = tuple[str, float]  # its text, and for how many seconds from now on new connections may be given it


class _Answer(msgspec.Struct):
    access_token: str
    expires_in: float = 0.0


class TokenProvider(AbstractTokenProvider):  # type: ignore[misc] # aiokafka has no types, and asks for this class
    """Gives tokens to the clients of aiokafka.

    The clients of a worker run in two threads. At worst both fetch a token at once.
    """

    def __init__(self, fetch: Callable[[], Awaitable[Token]], extensions: dict[str, str]) -> None:
        self._fetch = fetch
        self._extensions = extensions
        self._known = ("", 0.0)

    async def token(self) -> str:
        """Return a token for a new connection."""
        text, renew_at = self._known
        if monotonic() < renew_at:
            return text
        text, seconds = await self._fetch()
        self._known = text, monotonic() + seconds
        return text

    def extensions(self) -> dict[str, str]:
        """Return the SASL extensions that are sent with every token."""
        return self._extensions


def token_provider(settings: Settings) -> TokenProvider:
    """Return what gives the tokens that these settings name."""
    extensions = dict(each.split("=", 1) for each in settings.kafka_token_extensions.split())
    if settings.kafka_token_path:
        return TokenProvider(partial(_from_file, settings.kafka_token_path), extensions)
    if settings.kafka_token_url:
        return TokenProvider(partial(_from_provider, settings), extensions)
    if find_spec("aws_msk_iam_sasl_signer") is None:
        raise SettingsError(f"{PREFIX}KAFKA_MSK_REGION: needs the extra `msk`: pip install 'nearstream[msk]'")
    return TokenProvider(partial(_from_aws, settings.kafka_msk_region), extensions)


async def _from_file(path: str) -> Token:
    try:
        with await asyncio.to_thread(Path(path).open, "rb") as file:
            held = file.read(_MAX_BYTES)
    except OSError as error:
        raise TokenRefusedError(f"{PREFIX}KAFKA_TOKEN_PATH: expected a readable file: {error.strerror}") from None
    return _checked(held.decode("latin-1").strip(), f"{PREFIX}KAFKA_TOKEN_PATH: expected a file with a token"), 0.0


async def _from_aws(region: str) -> Token:
    """Return a token for Amazon MSK, which the credentials of this machine or pod sign."""
    from aws_msk_iam_sasl_signer import MSKAuthTokenProvider

    try:
        text, expires_at_ms = await asyncio.to_thread(MSKAuthTokenProvider.generate_auth_token, region)
    except Exception as error:  # noqa: BLE001 - the package and botocore have no common class of errors
        raise TokenUnavailableError(f"AWS gives no token for {region}: {error}") from None
    return text, (expires_at_ms / 1000 - time()) * _USED_SHARE


async def _from_provider(settings: Settings) -> Token:
    """Return a token for client credentials (RFC 6749, section 4.4)."""
    import aiohttp  # takes a tenth of a second

    form = {"grant_type": "client_credentials", **dict(parse_qsl(settings.kafka_token_form))}
    names = f"{quote_plus(settings.kafka_username)}:{quote_plus(settings.kafka_password)}"
    headers = {"Authorization": f"Basic {b64encode(names.encode()).decode()}", "Accept": "application/json"}
    try:
        async with (
            asyncio.timeout(_ANSWER_SECONDS),
            aiohttp.ClientSession(headers=headers) as session,
            session.post(settings.kafka_token_url, data=form, allow_redirects=False) as response,
        ):
            status, held = response.status, await _bounded(response.content)
    except (aiohttp.ClientConnectorCertificateError, aiohttp.InvalidURL) as error:
        raise TokenRefusedError(f"{_URL_VARIABLE}: {error}") from None
    except (aiohttp.ClientError, OSError) as error:  # OSError includes TimeoutError
        raise TokenUnavailableError(f"no token from {settings.kafka_token_url}: {error!r}") from None
    if status >= 500 or status in _BUSY:
        raise TokenUnavailableError(f"no token from {settings.kafka_token_url}: status {status}")
    if status != 200:
        raise TokenRefusedError(f"{_URL_VARIABLE}: the provider refuses a token: status {status}{_reason(held)}")
    try:
        answer = msgspec.json.decode(held, type=_Answer)
    except msgspec.DecodeError as error:
        raise TokenRefusedError(f"{_URL_VARIABLE}: expected an answer with access_token: {error}") from None
    text = _checked(answer.access_token, f"{_URL_VARIABLE}: expected an answer with access_token")
    return text, answer.expires_in * _USED_SHARE


async def _bounded(content: "aiohttp.StreamReader") -> bytes:
    """Return an answer, cut after `_MAX_BYTES`."""
    held = b""
    while len(held) < _MAX_BYTES and (chunk := await content.read(_MAX_BYTES - len(held))):
        held += chunk
    return held


def _reason(held: bytes) -> str:
    """Return the code of an error in an answer (RFC 6749, section 5.2)."""
    found = re.search(rb'"error"\s*:\s*"([\w.-]{1,60})"', held)
    return f", {found.group(1).decode()}" if found else ""


def _checked(text: str, expected: str) -> str:
    """Return a text that can be sent as a token, else raise TokenRefusedError with the message `expected`."""
    if not re.fullmatch(r"[!-~]+", text):
        raise TokenRefusedError(expected)
    return text


def tell_refused_tokens() -> None:
    """Let every client of this process get an error for a token that a broker refuses."""
    AIOKafkaConnection.authenticator_oauth = _authenticator


class _Authenticator(OAuthAuthenticator):  # type: ignore[misc] # aiokafka has no types
    """Lets a broker say that it refuses a token.

    A broker answers a token that it does not accept with a challenge, and sends the error after the client has answered
    that with one byte (RFC 7628, section 3.2.3). aiokafka takes the challenge for a success, and then loses its
    connection without a reason.
    """

    async def step(self, payload: bytes | None) -> tuple[bytes, bool] | None:
        """Return what to send next, and that an answer is expected. None ends the exchange."""
        return (_KVSEP, True) if payload else await super().step(payload)


def _authenticator(connection: AIOKafkaConnection) -> _Authenticator:
    return _Authenticator(sasl_oauth_token_provider=connection._sasl_oauth_token_provider)
