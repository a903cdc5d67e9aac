"""A deployment contains the values that follow from its settings."""

import pytest

from nearstream.schemas.verdicts.verdict import VERDICT_KINDS
from nearstream.streams.fingerprints.hashing import HashKey
from nearstream.streams.store.limits import IndexLimits
from nearstream.streams.store.local import local_store
from nearstream.workers.config.settings import SettingsError, load
from nearstream.workers.pipeline.deployment import Deployment


def test_it_is_made_from_its_settings() -> None:
    given = {"NEARSTREAM_BANDS": "20", "NEARSTREAM_TOPIC_PREFIX": "p.", "NEARSTREAM_MAX_TEXT_BYTES": "1000"}
    deployment = Deployment.of(load(given))
    assert deployment.scheme.bands.bands == 20
    assert deployment.document_limits.text_bytes == 1000
    assert deployment.index_limits.candidates == deployment.settings.candidates
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


@pytest.mark.parametrize(("value", "limit"), [("1", 1), ("3", 3), ("64", 64), ("all", 0)])
def test_the_limit_of_events_for_each_family_reaches_the_index(value: str, limit: int) -> None:
    assert Deployment.of(load({"NEARSTREAM_EVENTS_PER_FAMILY": value})).index_limits.events_per_family == limit
    assert Deployment.of(load({})).index_limits == IndexLimits()


@pytest.mark.parametrize(("value", "left_out"), [("all", set()), ("related", {"unique"}), ("none", set(VERDICT_KINDS))])
def test_the_verdicts_that_are_sent_follow_from_the_setting(value: str, left_out: set[str]) -> None:
    assert Deployment.of(load({"NEARSTREAM_VERDICTS": value})).verdicts() == set(VERDICT_KINDS) - left_out


@pytest.mark.parametrize(
    ("variable", "value", "message"),
    [
        ("NEARSTREAM_BANDS", "64", "NEARSTREAM_BANDS, NEARSTREAM_ROWS: "),
        ("NEARSTREAM_FIELDS", "text", "NEARSTREAM_FIELDS: expected ours=theirs"),
        ("NEARSTREAM_CONTAINMENT_MIN", "0.1", r"NEARSTREAM_\*_MIN: order_free_min <= version_min <= containment_min"),
    ],
)
def test_settings_that_do_not_fit_together_are_refused_at_start(variable: str, value: str, message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        Deployment.of(load({variable: value}))
