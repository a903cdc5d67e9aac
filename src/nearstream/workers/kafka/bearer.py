"""Let a broker say that it refuses a token.

A broker answers a token that it does not accept with a challenge, and sends the error after the client has answered
that with one byte (RFC 7628, section 3.2.3). aiokafka takes the challenge for a success, and then loses its connection
without a reason.
"""

from aiokafka.conn import AIOKafkaConnection, OAuthAuthenticator

_KVSEP = b"\x01"


def tell_refused_tokens() -> None:
    """Let every client of this process get an error for a token that a broker refuses."""
    AIOKafkaConnection.authenticator_oauth = _authenticator


class _Authenticator(OAuthAuthenticator):  # type: ignore[misc] # aiokafka has no types
    async def step(self, payload: bytes | None) -> tuple[bytes, bool] | None:
        """Return what to send next, and that an answer is expected. None ends the exchange."""
        return (_KVSEP, True) if payload else await super().step(payload)


def _authenticator(connection: AIOKafkaConnection) -> _Authenticator:
    return _Authenticator(sasl_oauth_token_provider=connection._sasl_oauth_token_provider)
