"""Check at the start that the settings match the deployment whose topics and index they name."""

import logging
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TypeVar

from nearstream.schemas.topics.table import DEAD_LETTERS, DOCUMENTS, SIGNATURES, VERDICTS
from nearstream.workers.config.settings import SettingsError
from nearstream.workers.kafka import offsets as kafka_offsets
from nearstream.workers.pipeline.deployment import Deployment
from nearstream.workers.redis.index.schemes import schemes
from nearstream.workers.redis.kept.deployments import (
    DeploymentRecord,
    Records,
    add_deployment,
    deployments,
    replace_deployment,
    require_same,
)
from nearstream.workers.redis.server.client import Client, open_client, until_answered

_READ = {
    "sign": (DOCUMENTS,),
    "match": (SIGNATURES,),
    "decide": (VERDICTS,),
    "alert": (VERDICTS, DEAD_LETTERS),
    "all": (DOCUMENTS, SIGNATURES),
}

_Reply = TypeVar("_Reply")

log = logging.getLogger(__name__)


async def require_deployment(
    deployment: Deployment, role: str, wait_seconds: float, *, new_group: bool = False
) -> DeploymentRecord | None:
    """Refuse settings that differ from those of the other workers, and return the record of the deployment.

    A worker that only signs is also refused if the record is lost, because it has no index that would show that the
    namespace is the wrong one. Nothing is written, and without a started worker there is no record.
    """
    records = await _asked(deployment, partial(deployments, address=deployment.index_address()), wait_seconds)
    known = await _required(deployment, records, role, wait_seconds, new_group=new_group)
    has_no_index = role in ("sign", "decide", "alert")
    lost = await describe_lost_record(deployment, wait_seconds) if known is None and has_no_index else None
    if lost is not None:
        raise SettingsError(lost)
    return known


async def claim_deployment(deployment: Deployment, role: str, wait_seconds: float, *, new_group: bool = False) -> None:
    """Write the record of this deployment unless there is one, then check it like `require_deployment`.

    With `new_group` the record passes to the group of the settings.
    """
    address, topic = deployment.index_address(), deployment.topic(SIGNATURES)
    ours = await _ours(deployment, wait_seconds)
    adding = partial(add_deployment, address=address, topic=topic, ours=ours)
    records = await _asked(deployment, adding, wait_seconds)
    known = await _required(deployment, records, role, wait_seconds, new_group=new_group)
    if known is not None and known.group != ours.group:
        replacing = partial(replace_deployment, address=address, topic=topic, record=ours)
        await _asked(deployment, replacing, wait_seconds)
        log.warning("group %s takes the place of group %s on %s", ours.group, known.group, topic)


async def describe_lost_record(deployment: Deployment, wait_seconds: float) -> str | None:
    """Explain why Redis has no record of a group that has read a topic, and what to do."""
    settings = deployment.settings
    for topic in map(deployment.topic, _READ["all"]):
        if await kafka_offsets.ever_committed(settings, topic, wait_seconds):
            return (
                f"NEARSTREAM_NAMESPACE: group {settings.group} has read {topic} before, but {settings.namespace} in"
                " Redis does not know its scheme: restore the former value (and NEARSTREAM_REDIS), or, if Redis has"
                " lost its data, run `nearstream rebuild` with the former NEARSTREAM_SCHEME and _HASH_KEY"
            )
    return None


async def describe_lost_index(deployment: Deployment, wait_seconds: float) -> str:
    """Explain why the index of a group is missing, and what to do."""
    address, topic, group = deployment.index_address(), deployment.topic(SIGNATURES), deployment.settings.group
    known = await until_answered(partial(schemes, address), wait_seconds)
    if address.scheme in known:
        return f"the index of {address.scheme} in {address.namespace} is lost: run `nearstream rebuild`"
    return (
        f"NEARSTREAM_NAMESPACE: group {group} has matched {topic} before, but {address.namespace} in Redis holds no"
        " index: restore the former value (and NEARSTREAM_REDIS), or, if Redis has lost its data, run"
        " `nearstream rebuild`"
    )


async def _required(
    deployment: Deployment, records: Records, role: str, wait_seconds: float, *, new_group: bool
) -> DeploymentRecord | None:
    topic, group = deployment.topic(SIGNATURES), deployment.settings.group
    require_same(records, deployment.index_address(), topic, await _ours(deployment, wait_seconds))
    known = records.get(topic)
    if known is not None and known.group != group and not new_group:
        read = " and ".join(map(deployment.topic, _READ[role]))
        raise SettingsError(
            f"NEARSTREAM_GROUP: {topic} and {deployment.settings.namespace} in Redis belong to group {known.group}, got"
            f" {group}: restore the former value; on purpose, run `nearstream worker --new-group`, which as {group}"
            f" goes on where that group has stopped, or reads all of {read} from the start and sends all events again"
        )
    return known


async def _ours(deployment: Deployment, wait_seconds: float) -> DeploymentRecord:
    settings, topic = deployment.settings, deployment.topic(SIGNATURES)
    partitions = await kafka_offsets.partitions(settings, [topic], wait_seconds)
    return DeploymentRecord(deployment.scheme.name, settings.group, len(partitions))


async def _asked(deployment: Deployment, ask: Callable[[Client], Awaitable[_Reply]], wait_seconds: float) -> _Reply:
    address = deployment.index_address()

    async def once() -> _Reply:
        async with open_client(address) as client:
            return await ask(client)

    return await until_answered(once, wait_seconds)
