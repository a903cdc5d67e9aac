"""Ask an OIDC provider for tokens."""

import asyncio
import re
from base64 import b64encode
from urllib.parse import parse_qsl, quote_plus

import aiohttp
import msgspec

from nearstream.workers.config.settings import PREFIX, Settings
from nearstream.workers.kafka.errors import TokenRefusedError, TokenUnavailableError
from nearstream.workers.kafka.token import MAX_BYTES, USED_SHARE, Token, checked

_ANSWER_SECONDS = 10.0
_BUSY = (408, 429)
_VARIABLE = f"{PREFIX}KAFKA_TOKEN_URL"


class _Answer(msgspec.Struct):
    """What an OIDC provider answers (RFC 6749, section 5.1)."""

    access_token: str
    expires_in: float = 0.0


async def fetch(settings: Settings) -> Token:
    """Return a token for client credentials (RFC 6749, section 4.4).

    Raises:
        TokenRefusedError: The provider refuses one, or its answer holds none.
        TokenUnavailableError: The provider does not answer within 10 s, or not now.
    """
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
        raise TokenRefusedError(f"{_VARIABLE}: {error}") from None
    except (aiohttp.ClientError, OSError) as error:  # OSError includes TimeoutError
        raise TokenUnavailableError(f"no token from {settings.kafka_token_url}: {error!r}") from None
    if status >= 500 or status in _BUSY:
        raise TokenUnavailableError(f"no token from {settings.kafka_token_url}: status {status}")
    if status != 200:
        raise TokenRefusedError(f"{_VARIABLE}: the provider refuses a token: status {status}{_reason(held)}")
    try:
        answer = msgspec.json.decode(held, type=_Answer)
    except msgspec.DecodeError as error:
        raise TokenRefusedError(f"{_VARIABLE}: expected an answer with access_token: {error}") from None
    text = checked(answer.access_token, f"{_VARIABLE}: expected an answer with access_token")
    return Token(text, answer.expires_in * USED_SHARE)


async def _bounded(content: aiohttp.StreamReader) -> bytes:
    """Return an answer, cut after `MAX_BYTES`."""
    held = b""
    while len(held) < MAX_BYTES and (chunk := await content.read(MAX_BYTES - len(held))):
        held += chunk
    return held


def _reason(held: bytes) -> str:
    """Return the code of an error in an answer (RFC 6749, section 5.2)."""
    found = re.search(rb'"error"\s*:\s*"([\w.-]{1,60})"', held)
    return f", {found.group(1).decode()}" if found else ""
