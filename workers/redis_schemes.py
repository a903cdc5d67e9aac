"""Which schemes share a namespace, of which one is active."""

import time
from dataclasses import dataclass

import msgspec

from streams.index import IndexLostError
from workers.redis_address import IndexAddress
from workers.redis_calls import Client, ask, call, connected
from workers.settings import SettingsError

ACTIVE, BUILDING, RETIRED, DROPPED = "active", "building", "retired", "dropped"
_PAGE = 1_000


class SchemeRefusedError(Exception):
    """The schemes are not in a state for what was asked; it says what to do."""


@dataclass(frozen=True)
class SchemeFacts:
    """What a namespace says of one scheme.

    Attributes:
        name: The scheme.
        state: `active`, `building`, `retired`, or `dropped` while its index is deleted.
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
        SettingsError: It holds another scheme or key, or ours is being dropped, or retired and may not stand beside.
        IndexLostError: It holds none, and none may be created.
    """
    held = await _claims(client, address)
    if not held and not may_create:
        raise IndexLostError(
            f"{address.namespace} holds no index: run `nearstream rebuild` if it is lost, else a first worker makes it"
        )
    if may_create and address.scheme not in held and (not held or address.beside):
        state = BUILDING if any(claim.state == ACTIVE for _, claim in held.values()) else ACTIVE
        claim = _Claim(address.key_fingerprint, state, time.time_ns() // 1_000_000)
        # Of two that come at once one writes, both read what was written.
        await call(client, "claim", _name(address), address.scheme, b"", msgspec.json.encode(claim))
        held = await _claims(client, address)
    if address.scheme not in held:
        raise SettingsError(
            f"{address.namespace} in Redis holds {', '.join(sorted(held))}, the settings make {address.scheme}:"
            " restore NEARSTREAM_SCHEME, _BANDS, _ROWS, _HASH_KEY, or set NEARSTREAM_NAMESPACE to a new name; to change"
            " over, run `nearstream index build`"
        )
    _, ours = held[address.scheme]
    if ours.key != address.key_fingerprint:
        wanted = address.key_fingerprint
        raise SettingsError(f"NEARSTREAM_HASH_KEY: {address.namespace} was filled with key {ours.key}, not {wanted}")
    if ours.state == DROPPED:  # what is left of it would mix with a new index
        raise SettingsError(
            f"NEARSTREAM_SCHEME: {address.scheme} is being dropped from {address.namespace}: if that was cut off, run"
            f" `nearstream index drop {address.scheme}` again"
        )
    if ours.state == RETIRED and not address.beside:
        raise SettingsError(
            f"NEARSTREAM_SCHEME: {address.scheme} is retired in {address.namespace}: `nearstream index list` tells"
            " which is active, `nearstream index switch` brings this one back"
        )


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
        SettingsError: The namespace does not hold this scheme.
        SchemeRefusedError: Somebody else switched at the same time.
        IndexUnavailableError: The server does not answer; the switch may be done.
    """
    async with connected(address.connection) as client:
        changes: list[bytes | str] = []
        for name, (raw, claim) in (await _claims_with(client, address)).items():
            state = ACTIVE if name == address.scheme else RETIRED if claim.state == ACTIVE else claim.state
            changes += [name, raw, _encoded(claim, state)]
        await _change(client, address, changes)
        return _facts(await _claims(client, address))


async def drop_scheme(address: IndexAddress) -> int:
    """Deletes the index of the address's scheme, forgets the scheme; how many keys that was.

    Its own facts go first, so that its workers find it lost. What was cut off is done by the next call; until then
    nothing is built there.

    Raises:
        SettingsError: The namespace does not hold this scheme.
        SchemeRefusedError: It is the active one, or somebody switched at the same time.
        IndexUnavailableError: The server does not answer; drop it again.
    """
    async with connected(address.connection) as client:
        raw, claim = (await _claims_with(client, address))[address.scheme]
        if claim.state == ACTIVE:
            raise SchemeRefusedError(f"{address.scheme} is active: switch to another scheme first")
        await _change(client, address, [address.scheme, raw, _encoded(claim, DROPPED)])
        tags = address.every_tag
        deleted = await _delete(client, f"{tags}m") + await _delete(client, f"{tags}*")
        await ask(client, "HDEL", _name(address), address.scheme)
        return deleted


async def _delete(client: Client, pattern: str) -> int:
    """Deletes the keys of this pattern; how many there were."""
    found: dict[bytes, list[bytes]] = {}  # by hash tag: keys of one slot go together
    deleted = 0
    async for key in client.scan_iter(match=pattern, count=_PAGE):
        batch = found.setdefault(key.partition(b"}")[0], [])
        batch.append(key)
        if len(batch) == _PAGE:
            deleted += await ask(client, "UNLINK", *batch)
            batch.clear()
    for batch in filter(None, found.values()):
        deleted += await ask(client, "UNLINK", *batch)
    return deleted


async def _claims_with(client: Client, address: IndexAddress) -> dict[str, tuple[bytes, _Claim]]:
    held = await _claims(client, address)
    if address.scheme not in held:
        names = ", ".join(sorted(held)) or "no scheme"
        raise SettingsError(f"{address.namespace} holds {names}, not {address.scheme}")
    return held


async def _change(client: Client, address: IndexAddress, changes: list[bytes | str]) -> None:
    if not await call(client, "claim", _name(address), *changes):
        raise SchemeRefusedError(f"the schemes of {address.namespace} changed meanwhile: look, then try again")


def _encoded(claim: _Claim, state: str) -> bytes:
    return msgspec.json.encode(msgspec.structs.replace(claim, state=state))


def _name(address: IndexAddress) -> bytes:
    return f"{{{address.namespace}}}:schemes".encode()


async def _claims(client: Client, address: IndexAddress) -> dict[str, tuple[bytes, _Claim]]:
    found = await ask(client, "HGETALL", _name(address))
    return {name.decode(): (claim, msgspec.json.decode(claim, type=_Claim)) for name, claim in sorted(found.items())}


def _facts(held: dict[str, tuple[bytes, _Claim]]) -> tuple[SchemeFacts, ...]:
    return tuple(SchemeFacts(name, claim.state, claim.key, claim.created_ms) for name, (_, claim) in held.items())
