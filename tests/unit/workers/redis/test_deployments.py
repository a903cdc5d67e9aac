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


@pytest.mark.parametrize("records", [{}, {TOPIC: FINE}, {TOPIC: FINE, OTHER_TOPIC: record(preset("compact", KEY))}])
def test_the_first_worker_fits_and_every_equal_one(records: Records) -> None:
    address = IndexAddress("redis://h", "ns", FINE.scheme, FINE.key_fingerprint)
    require_same(records, address, TOPIC, FINE)
    require_same(records, address, TOPIC, replace(FINE, group="two"))  # which the caller compares


@pytest.mark.parametrize(
    ("ours", "settings", "remedy"),
    [
        (preset("compact", KEY), "NEARSTREAM_SCHEME", "NEARSTREAM_SCHEME=fine"),
        (preset("fine", OTHER_KEY), "NEARSTREAM_HASH_KEY", "NEARSTREAM_HASH_KEY to nothing"),
        (
            preset("compact", OTHER_KEY),
            "NEARSTREAM_SCHEME, NEARSTREAM_HASH_KEY",
            "NEARSTREAM_SCHEME=fine, NEARSTREAM_HASH_KEY to nothing",
        ),
    ],
)
def test_another_scheme_or_key_is_refused_naming_the_setting_to_restore(
    ours: Scheme, settings: str, remedy: str
) -> None:
    told = refusal({TOPIC: FINE}, record(ours))
    assert told.startswith(f"{settings}: the signatures on {TOPIC} have the scheme {FINE.scheme}, ")
    assert f"the settings give {ours.name}. Probably the settings of this worker are mistaken: set {remedy}. " in told
    assert told.index("mistaken: set ") < told.index("`nearstream index drop ")


def test_a_secret_key_is_named_by_its_fingerprint() -> None:
    secret = record(preset("compact", OTHER_KEY))
    told = refusal({TOPIC: secret}, FINE)
    key = f"NEARSTREAM_HASH_KEY to the key with the fingerprint {OTHER_KEY.fingerprint}"
    assert f": set NEARSTREAM_SCHEME=compact, {key}. " in told


def test_partitions_that_were_added_are_refused() -> None:
    told = refusal({TOPIC: FINE}, replace(FINE, signatures_partitions=8))
    assert told.startswith(f"topic {TOPIC} has 8 partitions, but had 6 when its first worker started")


def test_two_topics_never_fill_one_index() -> None:
    told = refusal({OTHER_TOPIC: FINE}, replace(FINE, group="two"))
    assert f"the index of {FINE.scheme} in ns is filled from {OTHER_TOPIC} by group one, not from {TOPIC}" in told
