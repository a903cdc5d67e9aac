"""A deployment contains the values that follow from its settings."""

import pytest

from nearstream.streams.fingerprints.hashing import HashKey
from nearstream.streams.store.limits import IndexLimits
from nearstream.streams.store.store import local_store
from nearstream.workers.config.settings import SettingsError, load
from nearstream.workers.pipeline.deployment import Deployment


def test_it_is_made_from_its_settings() -> None:
    given = {"NEARSTREAM_SCHEME": "compact", "NEARSTREAM_TOPIC_PREFIX": "p.", "NEARSTREAM_MAX_TEXT_BYTES": "1000"}
    deployment = Deployment.of(load(given))
    assert deployment.scheme.label == "compact"
    assert deployment.document_limits.text_bytes == 1000
    assert deployment.index_limits == IndexLimits(bands=deployment.scheme.bands.bands)
    assert deployment.matcher(local_store(deployment.index_limits)).counts.full_buckets == 0
    writer = deployment.dead_letter_writer("sign")
    assert writer.topic == "p.nearstream.dead-letters.v1"
    assert writer.worker.endswith(" sign")


def test_its_key_is_the_secret_or_else_the_public_key() -> None:
    text = "a secret of thirty-two bytes or so"
    keyed, public = Deployment.of(load({"NEARSTREAM_HASH_KEY": text})), Deployment.of(load({}))
    assert keyed.key.fingerprint == HashKey.from_secret(text.encode()).fingerprint
    assert public.key.fingerprint == HashKey.public().fingerprint
    assert keyed.index_address().key_fingerprint != public.index_address().key_fingerprint


def test_fields_that_are_no_map_are_refused_at_start() -> None:
    with pytest.raises(SettingsError, match="NEARSTREAM_FIELDS: expected ours=theirs"):
        Deployment.of(load({"NEARSTREAM_FIELDS": "text"}))


def test_an_address_says_whether_it_is_one_of_a_cluster() -> None:
    single, cluster = (
        Deployment.of(load({"NEARSTREAM_REDIS": f"rediss{kind}://u:p@h:1/0"})).index_address().connection
        for kind in ("", "+cluster")
    )
    assert (single.url, single.cluster) == (cluster.url, not cluster.cluster)
