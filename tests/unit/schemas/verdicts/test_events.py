"""The lists of relations and verdicts, and the definitions that must agree with them."""

from typing import get_args

import pytest

from nearstream.schemas.topics.table import EVENT_TOPICS, RELATION_TOPICS, VERDICTS, topics_of
from nearstream.schemas.verdicts.events import RELATIONS, Event, PairEvent
from nearstream.schemas.verdicts.verdict import VERDICT_KINDS
from nearstream.streams.relations.describe import CONFIDENCE
from nearstream.workers.config.settings import Settings


def test_every_relation_has_one_event_type() -> None:
    assert sorted(kind.__struct_config__.tag for kind in get_args(PairEvent)) == sorted(RELATIONS)


def test_every_event_has_a_topic() -> None:
    sent = {kind.__struct_config__.tag: topics_of(kind.__struct_config__.tag) for kind in get_args(Event)}
    assert set(sent) == {"verdict", *RELATIONS, "retraction"}
    assert (sent["verdict"], sent["retraction"]) == ((VERDICTS,), EVENT_TOPICS)


def test_a_verdict_is_a_relation_or_says_that_there_is_none() -> None:
    assert set(VERDICT_KINDS) == {"unique", "unchanged", *RELATIONS}


@pytest.mark.parametrize("relation", RELATIONS)
def test_every_relation_has_a_topic_and_a_confidence(relation: str) -> None:
    (topic,) = topics_of(relation)
    assert topic in RELATION_TOPICS
    away, near = CONFIDENCE[relation]
    assert 0.5 < near <= away <= 1.0


def test_the_settings_send_all_relations_by_default() -> None:
    assert Settings().relations.split() == list(RELATIONS)


def test_the_codes_of_relations_in_the_index_stay_as_they_are() -> None:
    assert RELATIONS == ("exact_duplicate", "near_duplicate", "containment", "version", "rearranged", "overlap")
