"""Bad records do not stop the good documents around them, and nothing is lost."""

import json
import time
from pathlib import Path

from nearstream.schemas.documents.record import ConsumerRecord, Headers, ProducerRecord, header
from nearstream.schemas.topics.table import DOCUMENTS, SIGNATURES
from tests.fault.agreement import disagreement
from tests.support.bad_input import BAD
from tests.support.deployment import TEXTS, LocalDeployment, deployed, ids
from tests.support.foreign_headers import CAFE, send_batch

JSON: Headers = [("content-type", b"application/json")]


async def test_b54_bad_records_become_letters_and_hold_nobody_up(kafka: str, redis_url: str, tmp_path: Path) -> None:
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
        crowded: Headers = [("x", b"")] * 20_000
        records += [
            _good(deployment, name, 20)._replace(headers=headers)
            for name, headers in (("endless", endless), ("crowded", crowded))
        ]
        records += [ProducerRecord(topic, b"bad and crowded", b"[]", crowded), _good(deployment, "last", 20)]
        with deployment.worker() as worker:
            await deployment.send(records)
            now_ms, good = 1000 * int(time.time()), _good(deployment, "foreign", 22).value
            values = {b"foreign": good, b"bad and foreign": b"not json"}
            foreign = [
                ConsumerRecord(topic, 0, offset, now_ms, key, value, [(CAFE, b"x")])
                for offset, (key, value) in enumerate(values.items())
            ]
            await send_batch(kafka, foreign)
            await deployment.drained()
            assert await disagreement(deployment) == {}
            junk = [ProducerRecord(deployment.topic(SIGNATURES), b"default/junk", b"\xc1junk", [])]
            await deployment.send([*junk, _good(deployment, "very last", 21)])
            await deployment.drained()
            assert worker.poll() is None
        letters = await deployment.letters()
        told = {(letter.key or b"").decode("latin-1"): letter for letter in letters}
        assert len(letters) == len(BAD) + 4
        assert _reason(told["default/junk"].headers) == "invalid_signature"
        assert _reason(told["bad and foreign"].headers) == "not_json"
        assert told["bad and foreign"].headers[0] == ("caf\\xe9", b"x")
        assert "foreign" in {verdict.id for verdict in await deployment.verdicts()}
        assert _reason(told["bad and crowded"].headers) == "invalid_message"
        assert _reason(told["\xff"].headers) == "invalid_id"
        for name, value, headers, reason in BAD:
            assert (name, _reason(told[name].headers)) == (name, reason)
            assert told[name].value == value
            assert told[name].headers[: len(headers)] == headers
        assert len(ids(await deployment.verdicts())) > len(BAD)
        assert len(await deployment.events()) > 10


def _good(deployment: LocalDeployment, name: str, number: int = 0) -> ProducerRecord:
    """Return a readable document. Few documents share a text, so that no bucket becomes full."""
    return deployment.document(name, TEXTS[number])


def _reason(headers: Headers) -> str:
    return (header(headers, "nearstream-dead-reason") or b"").decode()
