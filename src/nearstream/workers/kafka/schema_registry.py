"""Register the JSON Schemas of messages in a schema registry that speaks the protocol of Confluent's."""

import json
from collections.abc import AsyncIterator, Mapping
from typing import Any

import aiohttp
import msgspec

from nearstream.workers.config.settings import SettingsError

_ANSWER_SECONDS = 30.0
_SHOWN = 300  # bytes of a refusal
_TYPE = "application/vnd.schemaregistry.v1+json"


class _Registered(msgspec.Struct):
    id: int


async def register(address: str, schemas: Mapping[str, Mapping[str, Any]]) -> AsyncIterator[tuple[str, int]]:
    """Register schemas by their subjects, and yield each subject with the id of its schema.

    A schema that is there already keeps its id.

    Args:
        address: `http(s)://` with the path below which the registry has `/subjects`, and its user and password if it
            needs them.
        schemas: The JSON Schema of each subject.

    Raises:
        SettingsError: The registry does not answer, or refuses a schema.
    """
    timeout = aiohttp.ClientTimeout(total=_ANSWER_SECONDS)
    async with aiohttp.ClientSession(timeout=timeout, headers={"Content-Type": _TYPE}) as session:
        for subject, schema in schemas.items():
            body = json.dumps({"schemaType": "JSON", "schema": json.dumps(schema, ensure_ascii=False)})
            try:
                posting = session.post(f"{address.rstrip('/')}/subjects/{subject}/versions", data=body)
                async with posting as response:
                    status, held = response.status, await response.content.read(_SHOWN)
            except (TimeoutError, aiohttp.ClientError, OSError) as error:
                raise SettingsError(f"--register: the registry does not answer: {type(error).__name__}") from None
            try:
                answer = msgspec.json.decode(held, type=_Registered) if status == 200 else None
            except msgspec.DecodeError:
                answer = None
            if answer is None:
                told = held.decode(errors="replace")
                raise SettingsError(f"--register: the registry refuses {subject}: status {status}, {told}")
            yield subject, answer.id
