"""Which schemes share a namespace, of which one is active."""

import time
from dataclasses import dataclass

import msgspec

from streams.index import IndexLostError
from workers.redis_address import IndexAddress
from workers.redis_calls import Client, ask, call, connected
from workers.settings import SettingsError

ACTIVE, BUILDING, RETIRED = "active", "building", "retired"


@dataclass(frozen=True)
class SchemeFacts:
    """What a namespace says of one scheme.

    Attributes:
        name: The scheme.
        state: `active`, `building` or `retired`.
        key_fingerprint: Of the deployment's key that its index is filled with.
        created_ms: When it was first used here, milliseconds since 1970.
    """

    name: str
    state: str
    key_fingerprint: str
    created_ms: int


class _Claim(msgspec.Struct, frozen=True):
    key: str
    state: str
    created_ms: int


async def claim_scheme(client: Client, address: IndexAddress, *, may_create: bool) -> None:
    """Finds, or writes, that this namespace holds our scheme under our key.

    Raises:
        SettingsError: It holds another scheme or key, or ours is not active and may not stand beside.
        IndexLostError: It holds none, and none may be created.
    """
    held = await _claims(client, address)
    if not held and not may_create:
        raise IndexLostError(f"{address.namespace} holds no index: run `nearstream rebuild`")
    if may_create and address.scheme not in held and (not held or address.beside):
        state = BUILDING if any(claim.state == ACTIVE for _, claim in held.values()) else ACTIVE
        claim = _Claim(address.key_fingerprint, state, time.time_ns() // 1_000_000)
        # Of two that come at once one writes, both read what was written.
        await call(client, "claim", _name(address), address.scheme, b"", msgspec.json.encode(claim))
        held = await _claims(client, address)
    if address.scheme not in held:
        raise SettingsError(
            f"{address.namespace} in Redis holds {', '.join(sorted(held))}, the settings make {address.scheme}:"
            " restore NEARSTREAM_SCHEME, _BANDS, _ROWS, _HASH_KEY, or set NEARSTREAM_NAMESPACE to a new name"
        )
    _, ours = held[address.scheme]
    if ours.key != address.key_fingerprint:
        wanted = address.key_fingerprint
        raise SettingsError(f"NEARSTREAM_HASH_KEY: {address.namespace} was filled with key {ours.key}, not {wanted}")
    if ours.state != ACTIVE and not address.beside:
        raise SettingsError(f"NEARSTREAM_SCHEME: {address.scheme} is {ours.state} in {address.namespace}, not active")


async def schemes(address: IndexAddress) -> tuple[SchemeFacts, ...]:
    """The schemes of this namespace by name.

    Raises:
        IndexUnavailableError: The server does not answer.
    """
    async with connected(address.connection) as client:
        return _facts(await _claims(client, address))


async def switch_scheme(address: IndexAddress) -> tuple[SchemeFacts, ...]:
    """Makes the address's scheme the active one, the active one retired; doing the same for the other switches back.

    Raises:
        SettingsError: The namespace does not hold this scheme, or somebody else switched at the same time.
        IndexUnavailableError: The server does not answer; the switch may be done.
    """
    async with connected(address.connection) as client:
        held = await _claims(client, address)
        if address.scheme not in held:
            names = ", ".join(sorted(held)) or "no scheme"
            raise SettingsError(f"{address.namespace} holds {names}, not {address.scheme}")
        changes: list[bytes | str] = []
        for name, (raw, claim) in held.items():
            state = ACTIVE if name == address.scheme else RETIRED if claim.state == ACTIVE else claim.state
            changes += [name, raw, msgspec.json.encode(msgspec.structs.replace(claim, state=state))]
        if not await call(client, "claim", _name(address), *changes):
            raise SettingsError(f"the schemes of {address.namespace} changed meanwhile: look, then switch again")
        return _facts(await _claims(client, address))


def _name(address: IndexAddress) -> bytes:
    return f"{{{address.namespace}}}:schemes".encode()


async def _claims(client: Client, address: IndexAddress) -> dict[str, tuple[bytes, _Claim]]:
    found = await ask(client, "HGETALL", _name(address))
    return {name.decode(): (claim, msgspec.json.decode(claim, type=_Claim)) for name, claim in sorted(found.items())}


def _facts(held: dict[str, tuple[bytes, _Claim]]) -> tuple[SchemeFacts, ...]:
    return tuple(SchemeFacts(name, claim.state, claim.key, claim.created_ms) for name, (_, claim) in held.items())
