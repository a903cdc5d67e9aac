"""The lists of relations and verdicts, and the definitions that must agree with them."""

from typing import get_args

import pytest

from nearstream.schemas.topics.table import EVENT_TOPICS, RELATION_TOPICS, VERDICTS, topics_of
from nearstream.schemas.verdicts.events import RELATIONS, Event
from nearstream.streams.relations.describe import CONFIDENCE


def test_every_event_has_a_topic() -> None:
    sent = {kind.__struct_config__.tag: topics_of(kind.__struct_config__.tag) for kind in get_args(Event)}
    assert set(sent) == {"verdict", *RELATIONS, "retraction"}
    assert (sent["verdict"], sent["retraction"]) == ((VERDICTS,), EVENT_TOPICS)


@pytest.mark.parametrize("relation", RELATIONS)
def test_every_relation_has_a_topic_and_a_confidence(relation: str) -> None:
    (topic,) = topics_of(relation)
    assert topic in RELATION_TOPICS
    away, near = CONFIDENCE[relation]
    assert 0.5 < near <= away <= 1.0


def test_the_codes_of_relations_in_the_index_stay_as_they_are() -> None:
    assert RELATIONS == ("exact_duplicate", "near_duplicate", "containment", "version", "rearranged", "overlap")
