"""The schemes that share a namespace, one of which is active."""

import time

import msgspec

from nearstream.streams.store.limits import IndexLostError
from nearstream.workers.config.exit_codes import RefusalError
from nearstream.workers.config.settings import SettingsError
from nearstream.workers.redis.server.address import IndexAddress
from nearstream.workers.redis.server.client import Client, ask, ask_fields, call, delete_keys, keys_of, open_client
from nearstream.workers.redis.server.layout import KeyKind

ACTIVE, BUILDING, RETIRED, DROPPED = "active", "building", "retired", "dropped"


class Claim(msgspec.Struct, frozen=True):
    """A scheme of a namespace."""

    state: str  # `active`, `building`, `retired`, or `dropped` while its index is deleted
    created_ms: int  # time of its first use in this namespace, in milliseconds since 1970


async def claim_scheme(client: Client, address: IndexAddress, *, may_create: bool) -> None:
    """Check that this namespace has our scheme, or add it."""
    claims = await _claims(client, address)
    if not claims and not may_create:
        raise IndexLostError(
            f"NEARSTREAM_NAMESPACE: {address.namespace} in Redis holds no index: check the value (and"
            " NEARSTREAM_REDIS); if Redis has lost the index, run `nearstream rebuild`, after which matching continues"
            " by itself; `nearstream doctor` says whether it is lost or not made yet"
        )
    if may_create and address.scheme not in claims and (not claims or address.beside):
        state = BUILDING if any(claim.state == ACTIVE for _, claim in claims.values()) else ACTIVE
        claim = Claim(state, time.time_ns() // 1_000_000)
        # If two clients claim at once, only one of them writes, and both read what it wrote.
        await call(client, "claim", _key(address), address.scheme, b"", msgspec.json.encode(claim))
        claims = await _claims(client, address)
    _require_usable(claims, address)


def _require_usable(claims: dict[str, tuple[bytes, Claim]], address: IndexAddress) -> None:
    if address.scheme not in claims:
        raise SettingsError(
            f"{address.namespace} in Redis holds {', '.join(sorted(claims))}, but the settings give {address.scheme}:"
            " restore NEARSTREAM_NAMESPACE, _SCHEME and _HASH_KEY, or set NEARSTREAM_NAMESPACE to a new"
            " name; to change the scheme, run `nearstream index build`"
        )
    _, ours = claims[address.scheme]
    if ours.state == DROPPED:  # its remains would mix with a new index
        raise SettingsError(
            f"NEARSTREAM_SCHEME: {address.scheme} is being dropped from {address.namespace}: if that was cut off, run"
            f" `nearstream index drop {address.scheme}` again"
        )
    if ours.state == RETIRED and not address.beside:
        raise SettingsError(
            f"NEARSTREAM_SCHEME: {address.scheme} is retired in {address.namespace}: run `nearstream index list` to see"
            " which scheme is active, or `nearstream index switch` to return to this one"
        )


async def schemes(address: IndexAddress) -> dict[str, Claim]:
    """Return the schemes of this namespace by name, in the order of the names."""
    async with open_client(address) as client:
        return _without_packed(await _claims(client, address))


async def switch_scheme(address: IndexAddress) -> dict[str, Claim]:
    """Make the scheme of the address active, retire the active one, and return all schemes of the namespace."""
    async with open_client(address) as client:
        changes: list[bytes | str] = []
        for name, (raw, claim) in (await _claims_with_ours(client, address)).items():
            state = ACTIVE if name == address.scheme else RETIRED if claim.state == ACTIVE else claim.state
            changes += [name, raw, _encoded(claim, state)]
        await _change(client, address, changes)
        return _without_packed(await _claims(client, address))


async def drop_scheme(address: IndexAddress) -> int:
    """Delete the index of the address's scheme, then the scheme itself, and return the number of deleted keys.

    The facts of the index are deleted first, so that its workers find it lost. If the deletion is interrupted, call
    this again: until it is complete, no index can be built there.
    """
    async with open_client(address) as client:
        raw, claim = (await _claims_with_ours(client, address))[address.scheme]
        if claim.state == ACTIVE:
            raise RefusalError(f"{address.scheme} is active: switch to another scheme first")
        await _change(client, address, [address.scheme, raw, _encoded(claim, DROPPED)])
        tags = address.prefix + b"*}"
        deleted = await delete_keys(client, keys_of(client, tags + KeyKind.FACTS))
        deleted += await delete_keys(client, keys_of(client, tags))
        await ask(client, "HDEL", _key(address), address.scheme)
        return deleted


async def _claims_with_ours(client: Client, address: IndexAddress) -> dict[str, tuple[bytes, Claim]]:
    claims = await _claims(client, address)
    if address.scheme not in claims:
        names = ", ".join(sorted(claims)) or "no scheme"
        raise SettingsError(f"{address.namespace} holds {names}, not {address.scheme}")
    return claims


async def _change(client: Client, address: IndexAddress, changes: list[bytes | str]) -> None:
    if not await call(client, "claim", _key(address), *changes):
        raise RefusalError(
            f"the schemes of {address.namespace} changed meanwhile: run `nearstream index list`, then try again"
        )


def _encoded(claim: Claim, state: str) -> bytes:
    return msgspec.json.encode(msgspec.structs.replace(claim, state=state))


def _key(address: IndexAddress) -> bytes:
    return f"{{{address.namespace}}}:schemes".encode()


async def _claims(client: Client, address: IndexAddress) -> dict[str, tuple[bytes, Claim]]:
    found = await ask_fields(client, _key(address))
    return {name.decode(): (claim, msgspec.json.decode(claim, type=Claim)) for name, claim in sorted(found.items())}


def _without_packed(claims: dict[str, tuple[bytes, Claim]]) -> dict[str, Claim]:
    return {name: claim for name, (_, claim) in claims.items()}
