"""Documents become lines of signatures without their texts, and only fitting lines are read."""

import json
from dataclasses import replace
from pathlib import Path

import msgspec

from nearstream.schemas.documents.signature import Origin, Signature
from nearstream.schemas.topics.codec import encode_signature_line
from nearstream.workers.config.settings import Settings
from nearstream.workers.files.source import Refused
from nearstream.workers.operations.signatures import LINE_MAX_BYTES, Signed, mismatch, read_signatures, sign_files
from nearstream.workers.pipeline.deployment import Deployment

TEXT = "the heron waits above the frozen weir until dusk, and no one but the miller has seen it there this winter"
KEY = "k" * 32


def deployment(**settings: str) -> Deployment:
    return Deployment.of(replace(Settings(hash_key=KEY), **settings))


def signature(folder: Path, job: Deployment | None = None) -> Signature:
    (folder / "note.txt").write_text(TEXT)
    (signed,) = sign_files(job or deployment(), [str(folder / "note.txt")])
    assert isinstance(signed, Signed)
    return signed.signature


def read_back(folder: Path, *lines: bytes) -> list[Signed | Refused]:
    path = folder / "signatures"
    path.write_bytes(b"\n".join(lines))
    return list(read_signatures(deployment().scheme, [str(path)]))


def test_a_signed_text_comes_back_as_it_was_and_its_line_has_no_word_of_it(tmp_path: Path) -> None:
    made = signature(tmp_path)
    line = encode_signature_line(made)
    assert b"\n" not in line
    assert not [word for word in TEXT.split() if len(word) > 4 and word.encode() in line.lower()]
    (found,) = read_back(tmp_path, line)
    assert isinstance(found, Signed)
    assert found.signature == made
    assert found.source.endswith("signatures:1")


def test_documents_of_all_kinds_are_signed_and_what_has_no_words_is_refused(tmp_path: Path) -> None:
    lines = [{"id": "a", "text": TEXT}, {"id": "b", "html": f"<p>{TEXT}"}, {"id": "c", "text": "..."}, {"id": 1}]
    (tmp_path / "some.jsonl").write_text("\n".join(map(json.dumps, lines)))
    found = list(sign_files(deployment(), [str(tmp_path / "some.jsonl"), str(tmp_path / "absent.txt")]))
    digests = {each.signature.id: each.signature.digest for each in found if isinstance(each, Signed)}
    assert digests.keys() == {"a", "b"}
    assert digests["a"] == digests["b"]
    assert next(each.reason for each in found if isinstance(each, Refused)) == "expected a text with words"
    assert len(found) == 5


def test_another_scheme_or_any_other_name_of_one_has_a_reason() -> None:
    ours = deployment().scheme.name
    for name in ("", "-", "--", "a-b", "standard", deployment(scheme="compact").scheme.name):
        reason = mismatch(ours, name)
        assert f"expected {ours}: sign with the same NEARSTREAM_SCHEME" in reason or "hash key" in reason
    assert "NEARSTREAM_SCHEME" in reason


def test_a_signature_that_no_party_may_send_is_refused(tmp_path: Path) -> None:
    for change, reason in (
        ({"origin": Origin("nearstream.documents.v1", 0, 7)}, "names a record of Kafka"),
        ({"sketch": b"short"}, "invalid_signature: "),
        ({"ld": bytes(70_000), "gaps": bytes(70_000)}, "invalid_signature: expected at most 131072 bytes"),
        ({"ld": bytes(140_000)}, "length <= 98304"),
    ):
        changed = msgspec.structs.replace(signature(tmp_path), **change)
        (refused,) = read_back(tmp_path, encode_signature_line(changed))
        assert isinstance(refused, Refused)
        assert reason in refused.reason


def test_lines_that_are_no_signatures_are_refused_one_by_one(tmp_path: Path) -> None:
    good = encode_signature_line(signature(tmp_path))
    found = read_back(tmp_path, b"\xff\xfe", b"{}", b"[" * 10_000, b"", good, b"x" * (LINE_MAX_BYTES + 1), good)
    assert [type(each) for each in found] == [Refused, Refused, Refused, Signed, Refused]
    assert [each.source.rpartition(":")[2] for each in found] == ["1", "2", "3", "5", "6"]
    assert "the rest of the file is not read" in str(found[-1])
    (missing,) = read_signatures(deployment().scheme, [str(tmp_path / "absent")])
    assert missing == Refused(str(tmp_path / "absent"), "No such file or directory")
