"""Bad records do not stop the good documents around them, and nothing is lost."""

import json
from pathlib import Path

import pytest

from nearstream.schemas.documents.record import Headers, ProducerRecord, header
from nearstream.schemas.topics.table import DOCUMENTS, SIGNATURES
from nearstream.streams.fingerprints.parameters import DEFAULT_LABEL
from tests.fault.agreement import disagreement
from tests.support.bad_input import BAD
from tests.support.deployment import TEXTS, LocalDeployment, deployed, ids

JSON: Headers = [("content-type", b"application/json")]


async def test_bad_records_become_letters_and_hold_nobody_up(kafka: str, redis_url: str, tmp_path: Path) -> None:
    async with deployed(kafka, redis_url, tmp_path) as deployment:
        topic = deployment.topic(DOCUMENTS)
        records = [_good(deployment, "before"), ProducerRecord(topic, b"\xff", None, [])]
        for number, (name, value, headers, _) in enumerate(BAD):
            records += [
                ProducerRecord(topic, name.encode(), value, headers),
                _good(deployment, f"after-{name}", number // 3),
            ]
        spaces = json.dumps({"id": "spaces", "text": " \t\n "}).encode()
        records += [ProducerRecord(topic, b"spaces", spaces, JSON)]
        endless: Headers = [("traceparent", b"0" * 300_000)]
        crowded: Headers = [("x", b"")] * 100_000
        records += [
            _good(deployment, name, 20)._replace(headers=headers)
            for name, headers in (("endless", endless), ("crowded", crowded))
        ]
        records += [ProducerRecord(topic, b"bad and crowded", b"[]", crowded), _good(deployment, "last", 20)]
        with deployment.worker() as worker:
            await deployment.send(records)
            await deployment.drained()
            assert worker.poll() is None
        letters = await deployment.letters()
        told = {(letter.key or b"").decode("latin-1"): letter for letter in letters}
        assert len(letters) == len(BAD) + 2
        assert _reason(told["bad and crowded"].headers) == "invalid_message"
        assert _reason(told["\xff"].headers) == "invalid_id"
        for name, value, headers, reason in BAD:
            assert (name, _reason(told[name].headers)) == (name, reason)
            assert told[name].value == value
            assert told[name].headers[: len(headers)] == headers
        assert len(ids(await deployment.verdicts())) > len(BAD)
        assert len(await deployment.events()) > 10
        assert await disagreement(deployment) == {}


async def test_bad_signatures_become_letters(kafka: str, redis_url: str, tmp_path: Path) -> None:
    async with deployed(kafka, redis_url, tmp_path) as deployment:
        signatures = deployment.topic(SIGNATURES)
        with deployment.worker() as worker:
            await deployment.send([_good(deployment, "one")])
            await deployment.drained()
            (signed,) = await deployment.read(SIGNATURES.name)
            value = signed.value or b""
            bad = {
                b"default/junk": b"\xc1junk",
                b"default/two": value,  # under the key of another document, compaction would drop the wrong record
                b"default/one": value.replace(DEFAULT_LABEL.encode(), b"." * len(DEFAULT_LABEL), 1),
            }
            await deployment.send([ProducerRecord(signatures, key, text, []) for key, text in bad.items()])
            await deployment.send([_good(deployment, "three")])
            await deployment.drained()
            assert worker.poll() is None
        reasons = {letter.key: _reason(letter.headers) for letter in await deployment.letters()}
        assert reasons == {
            b"default/junk": "invalid_signature",
            b"default/two": "invalid_signature",
            b"default/one": "other_scheme",
        }
        events = await deployment.events()
        assert [(type(event).__name__, event.newer.id, event.older.id) for event in events] == [  # type: ignore[union-attr]
            ("ExactDuplicate", "three", "one")
        ]


@pytest.mark.parametrize("size", [5_000_000, 20_000_000])
async def test_b40_a_document_over_the_limit_is_refused_before_it_is_sent(
    kafka: str, redis_url: str, tmp_path: Path, size: int
) -> None:
    async with deployed(kafka, redis_url, tmp_path) as deployment:
        lines = [json.dumps({"id": "large", "text": "x" * size}), json.dumps({"id": "good", "text": TEXTS[0]})]
        path = tmp_path / "documents.jsonl"
        path.write_text("\n".join(lines))
        done = deployment.run("produce", str(path))
        assert done.returncode == 65
        assert b"too_large" in done.stderr
        assert b"sent 1, refused" in done.stderr
        assert len(await deployment.read(DOCUMENTS.name)) == 1


def _good(deployment: LocalDeployment, name: str, number: int = 0) -> ProducerRecord:
    """Return a readable document. Few documents share a text, so that no bucket becomes full."""
    return deployment.document(name, TEXTS[number])


def _reason(headers: Headers) -> str:
    return (header(headers, "nearstream-dead-reason") or b"").decode()
