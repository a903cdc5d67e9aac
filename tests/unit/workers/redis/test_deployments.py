"""Settings are compared with the deployment records of a namespace."""

from dataclasses import replace

import pytest

from nearstream.streams.fingerprints.hashing import HashKey
from nearstream.streams.signing.scheme import Scheme, preset
from nearstream.workers.config.settings import SettingsError
from nearstream.workers.redis.kept.deployments import DeploymentRecord, Records, require_same
from nearstream.workers.redis.server.address import IndexAddress

TOPIC, OTHER_TOPIC = "a.nearstream.signatures.v1", "b.nearstream.signatures.v1"
KEY = HashKey.public()


def record(scheme: Scheme) -> DeploymentRecord:
    return DeploymentRecord(scheme.name, "one", 6)


FINE = record(preset("fine", KEY))


def refusal(records: Records, ours: DeploymentRecord) -> str:
    """Return the reason why a worker on TOPIC must not start."""
    address = IndexAddress("redis://h", "ns", ours.scheme)
    with pytest.raises(SettingsError) as refused:
        require_same(records, address, TOPIC, ours)
    return str(refused.value)


def test_a_first_secret_key_and_another_key_are_refused_with_the_way() -> None:
    keys = [HashKey.from_secret(bytes([byte]) * 32) for byte in (1, 2)]
    secret, other = (record(preset("fine", key)) for key in keys)
    told = refusal({TOPIC: FINE}, secret)
    assert "`nearstream index build`" in told
    assert "NEARSTREAM_TOPIC_PREFIX and NEARSTREAM_GROUP of its own" in told
    assert "begin anew" in told
    told = refusal({TOPIC: secret}, other)
    assert f"set NEARSTREAM_HASH_KEY to the key with the fingerprint {keys[0].fingerprint}. A second" in told
    told = refusal({TOPIC: replace(FINE, scheme=f"{FINE.scheme[:-1]}x")}, FINE)
    assert "set it as it was, with the release" in told


def test_added_partitions_and_a_second_topic_for_one_index_are_refused() -> None:
    told = refusal({TOPIC: FINE}, replace(FINE, signatures_partitions=8))
    assert told.startswith(f"topic {TOPIC} has 8 partitions, but had 6 when its first worker started")
    told = refusal({OTHER_TOPIC: FINE}, replace(FINE, group="two"))
    assert f"the index of {FINE.scheme} in ns is filled from {OTHER_TOPIC} by group one, not from {TOPIC}" in told
