"""Get tokens for Kafka from a file, an OIDC provider or AWS.

They are for the mechanism OAUTHBEARER of SASL.

A token is fetched when a connection is made, and given to further connections for four fifths of its life. A broker
that limits a connection to the life of its token closes it then, and the client connects again with a new token.
"""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from time import monotonic, time

from aiokafka.abc import AbstractTokenProvider
from aiokafka.conn import AIOKafkaConnection, OAuthAuthenticator

from nearstream.workers.config.settings import PREFIX, Settings, SettingsError
from nearstream.workers.kafka.errors import TokenRefusedError, TokenUnavailableError
from nearstream.workers.kafka.token import MAX_BYTES, USED_SHARE, Token, checked


class TokenProvider(AbstractTokenProvider):  # type: ignore[misc] # aiokafka has no types, and asks for this class
    """Gives tokens to the clients of aiokafka.

    The clients of a worker run in two threads. At worst both fetch a token at once.
    """

    def __init__(self, fetch: Callable[[], Awaitable[Token]], extensions: dict[str, str]) -> None:
        self._fetch = fetch
        self._extensions = extensions
        self._known = ("", 0.0)

    async def token(self) -> str:
        """Return a token for a new connection.

        Raises:
            TokenRefusedError: A setting or a file must change first.
            TokenUnavailableError: Waiting may help.
        """
        text, renew_at = self._known
        if monotonic() < renew_at:
            return text
        fetched = await self._fetch()
        self._known = fetched.text, monotonic() + fetched.seconds
        return fetched.text

    def extensions(self) -> dict[str, str]:
        """Return the SASL extensions that are sent with every token."""
        return self._extensions


def token_provider(settings: Settings) -> TokenProvider:
    """Return what gives the tokens that these settings name.

    Raises:
        SettingsError: The package that signs for AWS is not installed.
    """
    extensions = dict(each.split("=", 1) for each in settings.kafka_token_extensions.split())
    if settings.kafka_token_path:
        return TokenProvider(partial(_from_file, settings.kafka_token_path), extensions)
    if settings.kafka_token_url:
        from nearstream.workers.kafka.token_endpoint import fetch  # aiohttp takes a tenth of a second to import

        return TokenProvider(partial(fetch, settings), extensions)
    if find_spec("aws_msk_iam_sasl_signer") is None:
        raise SettingsError(f"{PREFIX}KAFKA_MSK_REGION: needs the extra `msk`: pip install 'nearstream[msk]'")
    return TokenProvider(partial(_from_aws, settings.kafka_msk_region), extensions)


async def _from_file(path: str) -> Token:
    """Return the token that a file holds now."""
    try:
        with await asyncio.to_thread(Path(path).open, "rb") as file:
            held = file.read(MAX_BYTES)
    except OSError as error:
        raise TokenRefusedError(f"{PREFIX}KAFKA_TOKEN_PATH: expected a readable file: {error.strerror}") from None
    return Token(checked(held.decode("latin-1").strip(), f"{PREFIX}KAFKA_TOKEN_PATH: expected a file with a token"))


async def _from_aws(region: str) -> Token:
    """Return a token for Amazon MSK.

    The credentials of this machine or pod sign it.
    """
    from aws_msk_iam_sasl_signer import MSKAuthTokenProvider

    try:
        text, expires_at_ms = await asyncio.to_thread(MSKAuthTokenProvider.generate_auth_token, region)
    except Exception as error:  # noqa: BLE001 - the package and botocore have no common class of errors
        raise TokenUnavailableError(f"AWS gives no token for {region}: {error}") from None
    return Token(text, (expires_at_ms / 1000 - time()) * USED_SHARE)


_KVSEP = b"\x01"


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
