"""The record of each deployment that uses a namespace.

All signatures of a topic have one scheme and one hash key, and the index of a scheme is filled from one topic by one
group. A worker with another value would poison the topic or match everything again. The first start therefore writes
down what all workers of the deployment have in common, and every later start is compared with that.

The records are in the hash `{namespace}:deployments`, by the name of the `signatures` topic. They are read and written
with plain commands, so that a worker that only signs needs no more rights than these.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

import msgspec

from nearstream.streams.fingerprints.hashing import HashKey
from nearstream.workers.config.settings import SettingsError
from nearstream.workers.redis.server.address import IndexAddress
from nearstream.workers.redis.server.client import Client, ask, ask_fields, open_client


@dataclass(frozen=True)
class DeploymentRecord:
    """What all workers of one deployment have in common."""

    scheme: str  # name of the scheme of all signatures of its topic, which names the hash key too
    group: str  # the consumer group that reads `documents` and `signatures`
    signatures_partitions: int  # number of partitions of `signatures`, which decides where a document key lives


_NAME = re.compile(r"\A((?P<preset>.*?)-\d+-u\d.*)-k(?P<key>[^-]*)")  # of a scheme, and first what no key decides

Records = Mapping[str, DeploymentRecord]


async def deployments(client: Client, address: IndexAddress) -> Records:
    """Return the records of the namespace, by the name of the `signatures` topic."""
    found = await ask_fields(client, _key(address))
    return {topic.decode(): msgspec.json.decode(text, type=DeploymentRecord) for topic, text in found.items()}


async def add_deployment(client: Client, address: IndexAddress, topic: str, ours: DeploymentRecord) -> Records:
    """Write the record of a topic unless there is one, and return all records after that.

    Of two workers that start at once with different settings only one writes, and both read what it wrote.
    """
    await ask(client, "HSETNX", _key(address), topic, msgspec.json.encode(ours))
    return await deployments(client, address)


async def replace_deployment(client: Client, address: IndexAddress, topic: str, record: DeploymentRecord) -> None:
    """Replace the record of a topic."""
    await ask(client, "HSET", _key(address), topic, msgspec.json.encode(record))


async def forget_scheme(address: IndexAddress, scheme: str) -> list[str]:
    """Delete the records of a scheme and return their topics."""
    async with open_client(address) as client:
        topics = [topic for topic, record in (await deployments(client, address)).items() if record.scheme == scheme]
        if topics:
            await ask(client, "HDEL", _key(address), *topics)
        return topics


def require_same(records: Records, address: IndexAddress, topic: str, ours: DeploymentRecord) -> None:
    """Refuse settings that do not fit the records of the namespace.

    The group is not compared.
    """
    known = records.get(topic)
    if known is None:
        _require_no_other_topic(records, address, topic)
        return
    remedies = _remedies(known.scheme, ours.scheme)
    if remedies == {"NEARSTREAM_HASH_KEY": _set_key(HashKey.public().fingerprint)}:
        raise SettingsError(
            f"NEARSTREAM_HASH_KEY: {topic} has the scheme {known.scheme} without a secret key, and a key makes another"
            " scheme: set a NEARSTREAM_TOPIC_PREFIX and NEARSTREAM_GROUP of its own, send to both, and run"
            " `nearstream index build` and later `nearstream index switch`. If the trial may be forgotten, set a"
            " NEARSTREAM_NAMESPACE of its own too, and begin anew"
        )
    if known.scheme != ours.scheme:
        raise SettingsError(
            f"{', '.join(remedies)}: the signatures on {topic} have the scheme {known.scheme}, the settings give"
            f" {ours.scheme}. Probably the settings of this worker are mistaken: set {', '.join(remedies.values())}. A"
            " second scheme needs a NEARSTREAM_TOPIC_PREFIX of its own. Only if the first worker of all was the"
            f" mistaken one, stop it and run `nearstream index drop {known.scheme}`"
        )
    if known.signatures_partitions != ours.signatures_partitions:
        raise SettingsError(
            f"topic {topic} has {ours.signatures_partitions} partitions, but had {known.signatures_partitions} when its"
            " first worker started, so document keys would change their partition: create topics with a new"
            " NEARSTREAM_TOPIC_PREFIX, and start with a new NEARSTREAM_NAMESPACE"
        )


def _require_no_other_topic(records: Records, address: IndexAddress, topic: str) -> None:
    for other, record in records.items():
        if record.scheme == address.scheme:
            raise SettingsError(
                f"NEARSTREAM_TOPIC_PREFIX, NEARSTREAM_NAMESPACE: the index of {record.scheme} in {address.namespace} is"
                f" filled from {other} by group {record.group}, not from {topic}: restore the prefix, or set"
                " NEARSTREAM_NAMESPACE to a name of its own"
            )


def _remedies(known: str, ours: str) -> dict[str, str]:
    old, new, remedies = _NAME.match(known), _NAME.match(ours), dict[str, str]()
    if old and new and old[1] != new[1]:
        remedies["NEARSTREAM_SCHEME"] = f"NEARSTREAM_SCHEME={old['preset']}"
    if old and new and old["key"] != new["key"]:
        remedies["NEARSTREAM_HASH_KEY"] = _set_key(old["key"])
    return remedies or {"NEARSTREAM_SCHEME": "it as it was, with the release that made that scheme"}


def _set_key(fingerprint: str) -> str:
    return f"NEARSTREAM_HASH_KEY to the key with the fingerprint {fingerprint}"


def _key(address: IndexAddress) -> bytes:
    return f"{{{address.namespace}}}:deployments".encode()
