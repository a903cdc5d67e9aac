"""Settings are compared with the deployment records of a namespace."""

from dataclasses import replace

import pytest

from nearstream.streams.fingerprints.hashing import HashKey
from nearstream.streams.signing.scheme import Scheme, preset
from nearstream.workers.config.settings import SettingsError
from nearstream.workers.redis.kept.deployments import DeploymentRecord, Records, require_same
from nearstream.workers.redis.server.address import IndexAddress

TOPIC, OTHER_TOPIC = "a.nearstream.signatures.v1", "b.nearstream.signatures.v1"
KEY, OTHER_KEY = HashKey.public(), HashKey.from_secret(b"a secret of thirty-two bytes and more")


def record(scheme: Scheme) -> DeploymentRecord:
    return DeploymentRecord(scheme.name, scheme.key_fingerprint, "one", 6)


FINE = record(preset("fine", KEY))


def refusal(records: Records, ours: DeploymentRecord) -> str:
    """Return the reason why a worker on TOPIC must not start."""
    address = IndexAddress("redis://h", "ns", ours.scheme, ours.key_fingerprint)
    with pytest.raises(SettingsError) as refused:
        require_same(records, address, TOPIC, ours)
    return str(refused.value)


def test_the_first_worker_fits_and_every_equal_one() -> None:
    address = IndexAddress("redis://h", "ns", FINE.scheme, FINE.key_fingerprint)
    for records in ({}, {TOPIC: FINE}, {TOPIC: FINE, OTHER_TOPIC: record(preset("compact", KEY))}):
        for ours in (FINE, replace(FINE, group="two")):  # which the caller compares
            require_same(records, address, TOPIC, ours)


SECRET = f"NEARSTREAM_HASH_KEY to the key with the fingerprint {OTHER_KEY.fingerprint}"


@pytest.mark.parametrize(
    ("theirs", "ours", "settings", "remedy"),
    [
        (FINE, record(preset("compact", KEY)), "NEARSTREAM_SCHEME", "NEARSTREAM_SCHEME=fine"),
        (FINE, record(preset("fine", OTHER_KEY)), "NEARSTREAM_HASH_KEY", "NEARSTREAM_HASH_KEY to nothing"),
        (
            record(preset("compact", OTHER_KEY)),
            FINE,
            "NEARSTREAM_SCHEME, NEARSTREAM_HASH_KEY",
            f"NEARSTREAM_SCHEME=compact, {SECRET}",
        ),
    ],
    ids=["scheme", "key", "both"],
)
def test_another_scheme_or_key_is_refused_naming_the_setting_to_restore(
    theirs: DeploymentRecord, ours: DeploymentRecord, settings: str, remedy: str
) -> None:
    told = refusal({TOPIC: theirs}, ours)
    assert told.startswith(f"{settings}: the signatures on {TOPIC} have the scheme {theirs.scheme}, ")
    assert f"the settings give {ours.scheme}. Probably the settings of this worker are mistaken: set {remedy}. " in told
    assert told.index("mistaken: set ") < told.index("`nearstream index drop ")


def test_added_partitions_and_a_second_topic_for_one_index_are_refused() -> None:
    told = refusal({TOPIC: FINE}, replace(FINE, signatures_partitions=8))
    assert told.startswith(f"topic {TOPIC} has 8 partitions, but had 6 when its first worker started")
    told = refusal({OTHER_TOPIC: FINE}, replace(FINE, group="two"))
    assert f"the index of {FINE.scheme} in ns is filled from {OTHER_TOPIC} by group one, not from {TOPIC}" in told
