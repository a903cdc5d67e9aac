"""One example payload of every message: it decodes today, and is written again byte for byte."""

import json
from dataclasses import asdict
from pathlib import Path

import pytest

from schemas.codec import (
    decode_document,
    decode_event,
    decode_signature,
    encode_document,
    encode_event,
    encode_signature,
)
from schemas.document import document_key
from schemas.events import ChangeEvent, Event, Retraction, event_id, kind_of
from schemas.signature import Origin
from schemas.topics import topic_of
from streams.completion import Bounds, complete, milliseconds
from streams.describe import CONFIDENCE, LINEAGE_CONFIDENCE
from streams.hashing import HashKey
from streams.relation import SAME_LINEAGE
from streams.scheme import preset
from streams.signer import Signer
from streams.thresholds import DEFAULT_THRESHOLDS

EXAMPLES = Path(__file__).parents[2] / "schemas" / "examples"
RELATIONS = ("exact_duplicate", "near_duplicate", "containment", "version", "rearranged", "overlap")
KINDS = (*RELATIONS, "retraction")
RELATION_FIELDS = [
    "type",
    "event_id",
    "collection",
    "scheme",
    "newer",
    "older",
    "same_lineage",
    "rule",
    "thresholds",
    "confidence",
    "evidence",
    "low_confidence",
    "degraded",
]
CHANGES = ["added", "removed", "new_spans", "new_spans_omitted"]


def example(name: str) -> bytes:
    return (EXAMPLES / name).read_bytes()


def event(kind: str) -> Event:
    return decode_event(example(f"{kind}.json"))


def id_by_the_recipe(said: Event) -> str:
    if isinstance(said, Retraction):
        key = document_key(said.collection, said.document_id)
        return event_id("retraction", key, "", "", str(milliseconds(said.removed_at)), said.scheme)
    older, newer = said.older, said.newer
    keys = [document_key(said.collection, each.id) for each in (older, newer)]
    return event_id(kind_of(said), keys[0], older.version, keys[1], newer.version, said.scheme)


def test_there_is_one_example_of_every_message_and_no_other_file() -> None:
    expected = {f"{name}.json" for name in ("document", *KINDS)} | {"signature.msgpack"}
    assert {path.name for path in EXAMPLES.iterdir()} == expected


@pytest.mark.parametrize("kind", KINDS)
def test_every_example_event_decodes_and_reencodes_equal(kind: str) -> None:
    said = event(kind)
    assert kind_of(said) == kind
    assert encode_event(said) == example(f"{kind}.json")


def test_the_example_document_decodes_and_reencodes_equal() -> None:
    assert encode_document(decode_document(example("document.json"))) == example("document.json")


def test_the_example_signature_decodes_and_reencodes_equal() -> None:
    assert encode_signature(decode_signature(example("signature.msgpack"))) == example("signature.msgpack")


def test_the_example_signature_is_what_the_public_key_makes_of_the_example_document() -> None:
    key = HashKey.public()
    document = complete(decode_document(example("document.json")), Bounds())
    signed = Signer(preset("standard", key), key).sign(document, Origin("nearstream.documents.v1", 2, 4410))
    assert encode_signature(signed) == example("signature.msgpack")
    preset("standard", key).check(signed)


@pytest.mark.parametrize("kind", RELATIONS)
def test_an_event_starts_with_the_same_fields_in_the_same_order_whatever_its_type(kind: str) -> None:
    assert list(json.loads(example(f"{kind}.json")))[: len(RELATION_FIELDS)] == RELATION_FIELDS


@pytest.mark.parametrize("kind", RELATIONS)
def test_every_relation_has_a_topic_that_says_so(kind: str) -> None:
    assert type(event(kind)).__name__ in topic_of(kind).values


def test_a_retraction_is_no_relation_with_one_topic() -> None:
    with pytest.raises(KeyError):
        topic_of("retraction")


@pytest.mark.parametrize("kind", KINDS)
def test_the_id_of_every_example_follows_the_recipe(kind: str) -> None:
    assert event(kind).event_id == id_by_the_recipe(event(kind))


def test_the_check_value_of_the_id_recipe_holds() -> None:
    assert (
        event_id(
            "near_duplicate",
            "news/a-1041",
            "5b0e6f1c9a2d7e43",
            "news/c-7730",
            "9d31c2b07f54ae18",
            "standard-1-u14-k0d3e89c8-5f1c2ab9",
        )
        == "7bee7e7eb821ba72c9c079a30632abab"
    )


def test_moving_a_character_across_two_fields_changes_the_id() -> None:
    assert event_id("k", "a/b", "c", "d", "e", "s") != event_id("k", "a/bc", "", "d", "e", "s")


@pytest.mark.parametrize("kind", KINDS)
def test_an_unknown_field_breaks_no_reader(kind: str) -> None:
    wider = {**json.loads(example(f"{kind}.json")), "later": {"major": [1]}}
    assert decode_event(json.dumps(wider).encode()) == event(kind)


@pytest.mark.parametrize("kind", ["near_duplicate", "containment", "version"])
def test_an_event_from_before_changes_were_told_is_still_read(kind: str) -> None:
    fields = json.loads(example(f"{kind}.json"))
    later = ("new_spans", "new_spans_omitted") if kind == "version" else CHANGES
    former = {name: value for name, value in fields.items() if name not in later}
    written = json.dumps(former, separators=(",", ":"), ensure_ascii=False).encode()
    assert encode_event(decode_event(written)) == written


@pytest.mark.parametrize("kind", RELATIONS)
def test_changes_follow_what_every_event_says_where_they_are_told(kind: str) -> None:
    names = list(json.loads(example(f"{kind}.json")))[len(RELATION_FIELDS) :]
    expected = {"near_duplicate": CHANGES, "version": CHANGES, "containment": [*CHANGES, "inner", "place"]}
    assert names == expected.get(kind, [])


@pytest.mark.parametrize("kind", ["near_duplicate", "containment", "version"])
def test_added_less_removed_is_by_how_much_the_newer_is_longer(kind: str) -> None:
    said = event(kind)
    assert isinstance(said, ChangeEvent)
    assert isinstance(said.added, int)
    assert isinstance(said.removed, int)
    assert said.added - said.removed == said.newer.characters - said.older.characters


@pytest.mark.parametrize("kind", RELATIONS)
def test_an_example_names_the_bounds_and_the_confidence_of_today(kind: str) -> None:
    said = event(kind)
    assert not isinstance(said, Retraction)
    today = asdict(DEFAULT_THRESHOLDS)
    assert said.thresholds == {name: float(today[name]) for name in said.thresholds}
    assert said.confidence == (LINEAGE_CONFIDENCE if said.rule == SAME_LINEAGE.name else CONFIDENCE[kind])


def test_a_longer_signature_of_a_later_release_is_read() -> None:
    whole = example("signature.msgpack")
    assert whole[:3] == b"\xdc\x00\x16"  # an array of 22
    assert decode_signature(b"\xdc\x00\x17" + whole[3:] + b"\xa5later") == decode_signature(whole)


def test_shares_are_written_as_floats_and_counts_as_whole_numbers() -> None:
    text = example("overlap.json")
    assert b'"symbols_min":4.0' in text
    assert b'"distance":{"value":5920,' in text
