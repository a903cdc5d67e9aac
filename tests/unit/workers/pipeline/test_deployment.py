"""A deployment contains the values that follow from its settings."""

import pytest

from nearstream.streams.fingerprints.hashing import HashKey
from nearstream.workers.config.settings import SettingsError, load
from nearstream.workers.pipeline.deployment import Deployment


def test_its_key_and_its_address_come_from_its_settings() -> None:
    text = "a secret of thirty-two bytes or so"
    keyed, public = Deployment.of(load({"NEARSTREAM_HASH_KEY": text})), Deployment.of(load({}))
    assert keyed.key.fingerprint == HashKey.from_secret(text.encode()).fingerprint
    assert public.key.fingerprint == HashKey.public().fingerprint
    clustered = Deployment.of(load({"NEARSTREAM_REDIS": "rediss+cluster://u:p@h:1/0"})).index_address()
    assert (clustered.url, clustered.cluster) == ("rediss://u:p@h:1/0", True)
    assert not public.index_address().cluster
    assert keyed.index_address().scheme != public.index_address().scheme


def test_fields_that_are_no_map_are_refused_at_start() -> None:
    with pytest.raises(SettingsError, match="NEARSTREAM_FIELDS: expected ours=theirs"):
        Deployment.of(load({"NEARSTREAM_FIELDS": "text"}))
