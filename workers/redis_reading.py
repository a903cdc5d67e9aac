"""Plain facts that a server tells of itself and of many keys at once."""

from collections.abc import Sequence
from typing import Any

from workers.redis_calls import Client, errors_mapped
from workers.settings import SettingsError

_AT_ONCE = 1_000


async def server_time_ms(client: Client) -> int:
    """Milliseconds since 1970 by the clock that retention goes by; of a cluster any node's.

    Raises:
        IndexUnavailableError: An outage.
    """
    with errors_mapped():
        seconds, microseconds = await client.execute_command("TIME")
        return int(seconds) * 1000 + int(microseconds) // 1000


async def lengths_of(client: Client, keys: Sequence[bytes]) -> list[int]:
    """How many fields each of these hashes has, 0 without one.

    Raises:
        IndexUnavailableError: An outage.
    """
    return [length or 0 for length in await _at_once(client, "HLEN", keys)]


async def memories_of(client: Client, keys: Sequence[bytes]) -> list[int] | None:
    """Bytes that each key takes, 0 without one; None if our user may not ask.

    Raises:
        IndexUnavailableError: An outage.
    """
    try:
        return [size or 0 for size in await _at_once(client, "MEMORY USAGE", keys, "SAMPLES", 0)]
    except SettingsError:
        return None


async def _at_once(client: Client, command: str, keys: Sequence[bytes], *arguments: str | int) -> list[Any]:
    """Replies of the same plain command about each key, a thousand keys in a round trip."""
    replies: list[Any] = []
    for start in range(0, len(keys), _AT_ONCE):
        with errors_mapped():
            async with client.pipeline(transaction=False) as pipeline:
                for key in keys[start : start + _AT_ONCE]:
                    pipeline.execute_command(command, key, *arguments)
                replies += await pipeline.execute()
    return replies
