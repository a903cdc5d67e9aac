"""The example payload of every message can be decoded and is encoded to equal bytes."""

import json
from functools import cache
from pathlib import Path

import pytest

from nearstream.schemas.alerts.alert import Alert, alert_id
from nearstream.schemas.documents.document import document_key
from nearstream.schemas.documents.evidence import DocumentRef, DocumentState, event_id, family_id
from nearstream.schemas.labels.decision import Decision
from nearstream.schemas.labels.label import LabelChange, label_change_id
from nearstream.schemas.published.json_schema import MESSAGES
from nearstream.schemas.topics.codec import (
    decode_document,
    decode_event,
    decode_json,
    decode_signature,
    encode_json,
    encode_signature,
)
from nearstream.schemas.topics.table import ALL, EVENT_TOPICS, topics_of
from nearstream.schemas.verdicts.events import RELATIONS, Event, RelationEvent, Retraction, kind_of
from nearstream.schemas.verdicts.verdict import DocumentVerdict
from nearstream.streams.fingerprints.hashing import HashKey
from nearstream.streams.fingerprints.parameters import DEFAULT_LABEL
from nearstream.streams.signing.scheme import preset
from tests.support.event_examples import made

EXAMPLES = Path(__file__).parents[2] / "schemas" / "examples"
KINDS = ("verdict", *RELATIONS, "retraction")
CHANGES = ["added", "removed", "new_spans", "new_spans_omitted", "symbols_differ"]


def example(name: str) -> bytes:
    return (EXAMPLES / name).read_bytes()


def event(kind: str) -> Event:
    return decode_event(example(f"{kind}.json"))


def id_by_the_recipe(said: Event) -> str:
    if isinstance(said, Retraction):
        removal = DocumentState(position=f"{said.partition}/{said.offset}")
        return event_id(
            "retraction", DocumentState(document_key(said.collection, said.document_id)), removal, said.scheme
        )
    if isinstance(said, DocumentVerdict):
        return event_id("verdict", DocumentState(), state(said.collection, said), said.scheme)
    states = [state(said.collection, ref) for ref in (said.older, said.newer)]
    return event_id(kind_of(said), *states, said.scheme)


def state(collection: str, ref: DocumentRef) -> DocumentState:
    return DocumentState(document_key(collection, ref.id), ref.version, f"{ref.partition}/{ref.offset}")


def family_of(collection: str, founder: DocumentRef, scheme: str) -> str:
    return family_id(document_key(collection, founder.id), founder.version, scheme)


def test_there_is_one_example_of_every_message_and_no_other_file() -> None:
    assert sorted(path.stem for path in EXAMPLES.iterdir()) == sorted(MESSAGES)


def test_every_example_decodes_and_reencodes_equal() -> None:
    for kind in KINDS:
        assert kind_of(event(kind)) == kind
        assert encode_json(event(kind)) == example(f"{kind}.json")
    assert encode_json(decode_document(example("document.json"))) == example("document.json")
    assert encode_json(decode_json(Decision, example("decision.json"))) == example("decision.json")
    assert encode_signature(decode_signature(example("signature.msgpack"))) == example("signature.msgpack")


def test_the_examples_without_a_document_have_the_ids_of_their_recipes() -> None:
    alert = decode_json(Alert, example("alert.json"))
    assert encode_json(alert) == example("alert.json")
    since_ms = round(alert.since.timestamp() * 1000)
    assert alert.event_id == alert_id(alert.collection, alert.name, alert.subject, alert.state, since_ms, alert.scheme)
    change = decode_json(LabelChange, example("label_change.json"))
    assert encode_json(change) == example("label_change.json")
    key, since_ms = document_key(change.collection, change.document_id), round(change.since.timestamp() * 1000)
    assert change.event_id == label_change_id(key, change.family, change.kind, since_ms, change.scheme)


event_examples = cache(made)


@pytest.mark.parametrize("name", ["signature.msgpack", "verdict.json", *(f"{kind}.json" for kind in RELATIONS)])
def test_an_example_is_what_the_default_scheme_makes(name: str) -> None:
    assert event_examples()[name] == example(name)


@pytest.mark.parametrize("name", ["alert", "retraction", "label_change"])
def test_an_example_without_a_document_names_a_scheme_of_today(name: str) -> None:
    label = "mail" if name == "label_change" else DEFAULT_LABEL
    assert json.loads(example(f"{name}.json"))["scheme"] == preset(label, HashKey.public()).name


def test_relation_events_have_the_fields_of_an_overlap_in_one_order_and_then_their_changes() -> None:
    own = {"near_duplicate": CHANGES, "version": CHANGES, "containment": [*CHANGES, "inner", "place"]}
    of_all = list(json.loads(example("overlap.json")))
    for kind in RELATIONS:
        assert list(json.loads(example(f"{kind}.json"))) == of_all + own.get(kind, []), kind


@pytest.mark.parametrize("kind", KINDS)
def test_an_event_goes_to_its_topics_under_the_id_of_the_recipe_and_bears_an_unknown_field(kind: str) -> None:
    said = event(kind)
    assert said.event_id == id_by_the_recipe(said)
    told = [topic for topic in ALL if type(said).__name__ in topic.values]
    assert list(topics_of(kind)) == told
    assert set(told) <= set(EVENT_TOPICS)
    wider = {**json.loads(example(f"{kind}.json")), "later": {"major": [1]}}
    assert decode_event(json.dumps(wider).encode()) == said


def test_the_check_values_of_the_recipes_of_ids_hold() -> None:
    scheme = "standard-1-u14-k0d3e89c8-5f1c2ab9"
    older = DocumentState("news/a-1041", "5b0e6f1c9a2d7e43", "3/8811")
    newer = DocumentState("news/c-7730", "9d31c2b07f54ae18", "5/1207")
    assert event_id("near_duplicate", older, newer, scheme) == "86bbd4b622233d9aa993eff02ab2f7eb"
    assert event_id("verdict", DocumentState(), newer, scheme) == "4c15b6071fa33d13de72a4ade0958757"
    assert family_id("news/a-1041", "5b0e6f1c9a2d7e43", scheme) == "53a404f6c9ba93bb957ed25746c9ed61"
    # A character that moves across two fields changes the id.
    assert event_id("k", DocumentState("a/b", "c"), newer, "s") != event_id("k", DocumentState("a/bc"), newer, "s")


def test_the_example_verdict_and_its_pair_event_tell_of_one_family() -> None:
    said, pair = event("verdict"), event("near_duplicate")
    assert isinstance(said, DocumentVerdict)
    assert isinstance(pair, RelationEvent)
    assert said.family.founder is not None
    assert said.family.id == pair.family == family_of(said.collection, said.family.founder, said.scheme)
    assert (said.id, said.of) == (pair.newer.id, pair.older)
    assert (said.resemblance, said.distance) == (pair.evidence.resemblance, pair.evidence.distance)


def test_a_longer_signature_of_a_later_release_is_read() -> None:
    whole = example("signature.msgpack")
    assert whole[:3] == b"\xdc\x00\x1a"  # an array of 26
    assert decode_signature(b"\xdc\x00\x1b" + whole[3:] + b"\xa5later") == decode_signature(whole)


def test_shares_are_written_as_floats_and_counts_as_whole_numbers() -> None:
    text = example("overlap.json")
    assert b'"symbols_min":4.0' in text
    assert b'"distance":{"value":5379,' in text
