"""The comparison of messages runs, and what it compares holds the same values."""

import json

import msgspec
import pytest

from benchmarks import contract
from benchmarks.texts import texts
from nearstream.schemas.topics.codec import decode_event, encode_json
from nearstream.schemas.verdicts.events import NearDuplicate
from nearstream.streams.signing.scheme import DEFAULT_LABEL, preset


def test_every_figure_is_measured_and_a_signature_is_smaller_than_its_json(capsys: pytest.CaptureFixture[str]) -> None:
    contract.main(["--repeats", "1", "--shortest-ms", "1"])
    found = json.loads(capsys.readouterr().out)
    assert all(us > 0 for us in found["us"].values())
    assert len(found["gates"]) == 5
    assert all(gate["value"] is not None for gate in found["gates"].values())
    assert found["gates"]["bytes of a signature, JSON / ours"]["ok"]


def test_both_sides_hold_the_same_values() -> None:
    document = contract._document("a", texts("en-1")[0])
    read = contract.FaustDocument.loads(encode_json(document))
    assert (read.id, read.text, read.observed_at, read.labels) == (
        "a",
        document.text,
        document.observed_at,
        document.labels,
    )
    event = contract._event(preset(DEFAULT_LABEL, contract._KEY), document)
    record = json.loads(contract._as_record(event).dumps())
    told = json.loads(msgspec.json.encode(event))
    assert {name: record[name] for name in ("event_id", "rule", "evidence")} == {
        name: told[name] for name in ("event_id", "rule", "evidence")
    }
    assert isinstance(decode_event(msgspec.json.encode(event)), NearDuplicate)
