"""Documents and labels on their way from the HTTP API through Kafka into the index, and back after a loss."""

import asyncio
import json
import re
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from email.message import EmailMessage
from email.utils import format_datetime
from pathlib import Path
from typing import cast
from urllib.parse import quote

import pytest
from msgspec.structs import replace
from redis.asyncio import Redis

from nearstream.schemas.alerts.alert import Alert
from nearstream.schemas.documents.document import Document
from nearstream.schemas.documents.record import ProducerRecord, header
from nearstream.schemas.documents.signature import Origin, Signature
from nearstream.schemas.labels.label import Label, LabelChange
from nearstream.schemas.topics.codec import decode_json, encode_signature_line
from nearstream.schemas.topics.dead_letter import REASON_HEADER
from nearstream.schemas.topics.table import ALERTS, DOCUMENTS, LABELS_CHANGED, SIGNATURES
from nearstream.workers.pipeline.signature_records import label_record
from tests.devstack.redis import redis_server
from tests.devstack.server import LocalServer, running
from tests.support.api import HASTY_SECONDS, Api, served
from tests.support.deployment import TEXTS, LocalDeployment, deployed, until
from tests.support.matching import prose

TEXT, OTHER = TEXTS[0], TEXTS[5]
NEAR = TEXT.replace(" the ", " each ", 1)
NAME = "<1@a.example/x>"
JSON = {"Content-Type": "application/json"}
LINE = " ".join(("a-token-for-mail-alone", "mail"))
HASTY = {"api_seconds": str(HASTY_SECONDS)}
ACCEPTED = (202, {"accepted": True})


@asynccontextmanager
async def _deployed(
    kafka: str, redis_url: str, logs: Path, **changed: str
) -> AsyncIterator[tuple[LocalDeployment, Api]]:
    async with (
        deployed(kafka, redis_url, logs, label_delay_seconds="0", **changed) as local,
        served(redis_url, **local.given()) as api,
    ):
        yield local, api


async def _confirmed(api: Api, method: str, path: str, body: str = "") -> tuple[int, dict[str, object]]:
    """Send a change again and again, because the machine may be too busy for Kafka to confirm it in time."""
    async with asyncio.timeout(60):
        while True:
            answer = await api.send(method, path, body, **JSON)
            if answer[0] != 503:
                return answer


async def _label(api: Api, **said: object) -> tuple[int, dict[str, object]]:
    return await _confirmed(api, "POST", "/v1/label", json.dumps(said))


async def _learn(api: Api, body: str | bytes, **headers: str) -> dict[str, object]:
    """Learn a document. The machine may be too busy to confirm it in time, so that it is learned again."""
    async with asyncio.timeout(60):
        while True:
            status, answer = await api.send("POST", "/v1/check?learn=1", body, **headers)
            assert status == 200
            if answer["learned"]:
                return answer
            assert answer["learn_reason"] in ("deadline", "kafka_unavailable")


async def _verdict(api: Api, text: str) -> tuple[object, object]:
    answer = (await api.ask(text))[1]
    return answer["verdict"], answer["labels"]


def _counts(spam: int = 0, ham: int = 0) -> dict[str, int]:
    return {"spam": spam, "ham": ham}


async def test_what_resembles_a_labelled_document_is_known_also_after_a_rebuild(kafka: str, tmp_path: Path) -> None:
    with running(redis_server(tmp_path / "redis")) as redis:
        url = f"redis://{redis.address}/0"
        async with _deployed(kafka, url, tmp_path) as (local, api):
            # The label may come before its document, because they are in partitions of their own.
            assert await _label(api, id=NAME, label="spam", weight=3, expected=True) == ACCEPTED
            with local.worker():
                await local.send([local.document(NAME, TEXT), local.document("b", NEAR), local.document("c", OTHER)])
                await local.drained()
                assert await _verdict(api, NEAR) == ("known_bad", _counts(spam=3))
                assert await _verdict(api, OTHER) == ("near_duplicate", _counts())

                assert await _confirmed(api, "DELETE", f"/v1/label/default/{quote(NAME, safe='')}") == ACCEPTED
                for _ in range(2):
                    assert await _label(api, id="b", label="ham", weight=2) == ACCEPTED
                await local.drained()
                assert await _verdict(api, TEXT) == ("known_good", _counts(ham=2))
            async with Redis.from_url(url) as client:
                await client.flushdb()
            assert (await api.ask(TEXT))[1]["reason"] == "index_lost"
            done = local.run("rebuild", "--quiet")
            assert done.returncode == 0
            # A label that was not confirmed in time may be on the topic all the same.
            assert re.fullmatch(rb"admitted 3, removed 0, skipped 0, labels ([4-9]|\d\d)\n", done.stdout)
            assert await _verdict(api, TEXT) == ("known_good", _counts(ham=2))
            assert await local.letters() == []


@pytest.fixture(scope="module")
async def labelling(
    kafka: str, redis_url: str, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[tuple[LocalDeployment, Api]]:
    """Yield a deployment whose worker runs, and its API."""
    logs, of_mail = tmp_path_factory.mktemp("labels"), {"profile": "mail", "hash_key": "k" * 32}
    async with _deployed(kafka, redis_url, logs, **of_mail) as (local, api):
        with local.worker():
            yield local, api


async def test_an_unknown_id_is_refused_and_members_are_listed_and_labelled_by_the_command(
    labelling: tuple[LocalDeployment, Api], tmp_path: Path
) -> None:
    local, api = labelling
    unknown = await _label(api, id="nobody", label="spam")
    assert (unknown[0], unknown[1]["error"], unknown[1]["known"]) == (409, "unknown_document", [])
    await local.send([local.document(NAME, TEXT), local.document("b/c", NEAR)])
    await local.drained()
    bare = await _label(api, id=NAME.strip("<>"), label="spam")
    assert (bare[0], bare[1]["known"]) == (409, [NAME])
    status, answer = await api.send("GET", f"/v1/families/{quote(NAME, safe='')}/members?limit=1")
    (first,) = cast(list[dict[str, str]], answer["members"])
    assert (status, answer["size"], answer["next"]) == (200, 2, 1)
    status, answer = await api.send("GET", "/v1/families/b%2Fc/members?after=1")
    (second,) = cast(list[dict[str, str]], answer["members"])
    assert ({first["id"], second["id"]}, answer["next"]) == ({NAME, "b/c"}, None)
    for query, code in (("", 404), ("?limit=0", 400), ("?limit=1001", 400), ("?before=1", 400)):
        assert (await api.send("GET", f"/v1/families/nobody/members{query}"))[0] == code
    shown = local.run("show", "b/c", "--members", "--json")
    assert [json.loads(line)["id"] for line in shown.stdout.splitlines()] == [first["id"], second["id"]]
    assert local.run("show", "nobody", "--members").returncode == 1

    new = tmp_path / "new.txt"
    new.write_text(OTHER)
    done = local.run("label", "spam", NAME, str(new), "--weight", "2")
    assert (done.returncode, done.stdout.count(b"spam sent")) == (0, 2), done
    done = local.run("label", "spam", str(new), "--collection", "fresh", "--weight", "9")
    assert (done.returncode, done.stdout.count(b"spam sent")) == (0, 1), done
    mistaken = local.run("label", "ham", NAME.strip("<>"))
    assert (mistaken.returncode, mistaken.stdout.count(NAME.encode())) == (1, 1)
    missing = local.run("label", "spam", "missing.eml")
    assert (missing.returncode, missing.stdout) == (1, b"missing.eml: not in the index, and no file\n")
    await local.drained()
    assert await _verdict(api, NEAR) == await _verdict(api, OTHER) == ("known_bad", _counts(spam=2))
    fresh = (await api.ask(OTHER, nearstream_collection="fresh"))[1]
    assert (fresh["verdict"], fresh["labels"]) == ("known_bad", _counts(spam=9))
    # A fresh label does not count yet where labels have a delay.
    async with served(local.settings.redis, **local.given() | {"label_delay_seconds": "300"}) as patient:
        assert await _verdict(patient, NEAR) == ("near_duplicate", _counts())


async def test_a_signature_is_learned_and_labelled_without_its_text(labelling: tuple[LocalDeployment, Api]) -> None:
    local, api = labelling
    signature = api.deployment.signer().sign(Document(id="shared", text=prose(7), observed_at=datetime.now(UTC)))
    for other in (
        replace(signature, scheme="other-1-u14-k00000000-00000000"),
        replace(signature, sketch=b"short"),
        replace(signature, origin=Origin("documents", 0, 1)),
    ):
        status, answer = await _label(api, signature=_array(other), label="spam")
        assert (status, answer["error"]) == (400, "invalid_signature")
    for wrong in ({"id": "a", "signature": _array(signature)}, {}, {"signature": ["x"]}):
        status, answer = await _label(api, label="spam", **wrong)
        assert (status, answer["error"]) == (400, "invalid_message")
    assert await _label(api, signature=_array(signature), label="spam", weight=2) == ACCEPTED
    await local.drained()
    assert await _verdict(api, prose(7)) == ("known_bad", _counts(spam=2))
    assert await local.letters() == []


async def test_a_label_that_cannot_be_read_is_refused_and_one_on_the_topic_becomes_a_dead_letter(
    labelling: tuple[LocalDeployment, Api],
) -> None:
    local, api = labelling
    for said, error in (
        (b"spam", "not_json"),
        (b'{"id": "a"}', "invalid_message"),
        (b'{"id": "a", "label": "bulk"}', "invalid_message"),
        (b'{"id": "a", "label": "spam", "weight": 101}', "invalid_message"),
        (b'{"id": "", "label": "spam"}', "invalid_id"),
        (b'{"id": "a", "label": "spam", "collection": "A/B"}', "invalid_message"),
    ):
        status, answer = await api.send("POST", "/v1/label", said, **JSON)
        assert (status, answer["error"]) == (400, error)
    mistyped = await api.send("POST", "/v1/label", b'{"id": "a", "label": "spam", "wieght": 3}', **JSON)
    assert mistyped == (400, {"error": "invalid_message", "detail": "Expected no field wieght"})
    assert (await api.send("POST", "/v1/label", b" " * 300_000, **JSON))[0] == 413
    foreign = await api.send("POST", "/v1/label", b'{"id": "a", "label": "spam"}', Origin="http://other.example")
    assert (foreign[0], foreign[1]["error"]) == (403, "cross_origin")
    await local.send([ProducerRecord(local.topic(SIGNATURES), b"label:default/a", b'{"label": "bulk"}', [])])
    await local.send([local.document("a", prose(9))])
    await local.drained()
    (letter,) = await local.letters()
    assert header(letter.headers, REASON_HEADER) == b"invalid_message"
    assert await _verdict(api, prose(9)) == ("near_duplicate", _counts())


async def test_texts_and_mails_are_learned_once_in_their_collections_and_forgotten_when_they_are_removed(
    labelling: tuple[LocalDeployment, Api],
) -> None:
    local, api = labelling
    name = "https://a.example/x y?z=%2F"
    text, message = prose(11), EmailMessage()
    message["From"], message["To"], message["Subject"] = "shop@a.example", "anna@b.example", "News"
    message["Message-ID"], message["Date"] = "<anna@a.example>", "Mon, 02 Mar 2026 08:15:00 +0000"
    message.set_content(f"Dear anna,\n\n{text}\n")
    given = {"Content-Type": "message/rfc822", "nearstream-collection": "inbox"}
    for _ in range(2):
        answer = await _learn(api, text, **{"Content-Type": "text/plain", "nearstream-id": name})
        assert (answer["learned"], answer["learn_reason"]) == (True, "")
    await _learn(api, message.as_bytes(), **given)
    await local.drained()
    (mail,) = {each.value for each in await local.read(DOCUMENTS.name) if each.key == b"<anna@a.example>"}
    assert b"shop@a.example" not in (mail or b"")
    _, answer = await api.ask(f"one more word and {text}")
    assert (answer["verdict"], answer["size"]) == ("near_duplicate", 1)
    assert (answer["match"]["id"], answer["learned"], answer["learn_reason"]) == (name, False, "")
    assert (await api.ask(prose(13)))[1]["verdict"] == "none"
    assert (await api.ask(message.as_bytes(), **given))[1]["match"]["id"] == "<anna@a.example>"
    others = given | {"nearstream-collection": "outbox"}
    assert (await api.ask(message.as_bytes(), **others))[1]["verdict"] == "none"

    path = f"/v1/documents/default/{quote(name, safe='')}"
    assert await api.send("DELETE", path) == (202, {"removed": True})
    await local.drained()
    assert (await api.ask(f"one more word and {text}"))[1]["verdict"] == "none"

    for person, code in (("nobody@b.example", 1), ("Anna@b.example", 0)):
        done = local.run("remove", "--person", person, "--collection", "inbox")
        assert (done.returncode, done.stdout.count(b"<anna@a.example>: live")) == (code, 1 - code), done
    await local.drained()
    assert (await api.ask(message.as_bytes(), **given))[1]["verdict"] == "none"


async def test_labels_of_a_reference_are_named_and_a_document_shows_by_what_one_reaches_it(
    labelling: tuple[LocalDeployment, Api],
) -> None:
    local, api = labelling
    given = {"Content-Type": "message/rfc822"}
    mail = b"From: a@a.example\nSubject: a\nMessage-ID: <%b@a.example>\n\n" + prose(17).encode()
    for name in (b"1", b"2"):
        await _learn(api, mail % name, **given | {"nearstream-collection": "campaigns"})
    await local.drained()
    asked = given | {"nearstream-against": "campaigns"}
    for labels in (_counts(), _counts(spam=4)):
        (match,) = (await api.ask(mail % b"3", **asked))[1]["references"]
        assert (match["collection"], match["labels"]) == ("campaigns", labels)
        assert await _label(api, id="<1@a.example>", label="spam", weight=4, collection="campaigns") == ACCEPTED
        await local.drained()
    shown = local.run("show", "<2@a.example>", "--collection", "campaigns")
    said = rb"\nreached\n  known +known_bad\n  witness +equal\n  labels +spam 4, ham 0\n"
    assert re.search(said, shown.stdout), shown.stdout


async def test_old_dates_in_the_mails_of_one_burst_establish_nobody(labelling: tuple[LocalDeployment, Api]) -> None:
    local, api = labelling
    dates = [datetime.now(UTC) - timedelta(hours=hours) for hours in (20, 19, 18, 17, 16, 0)]
    mail = "From: a@{}.example\nSubject: a\nMessage-ID: <{}@a.example>\nDate: {}\n\n{} {}".format
    for collection, is_said, witness in (("inbox", False, "near"), ("outbox", True, "established")):
        given = {"Content-Type": "message/rfc822", "nearstream-collection": collection}
        for number, date in enumerate(dates):
            said = {"nearstream-observed-at": date.isoformat()} if is_said else {}
            await _learn(api, mail("shop", number, format_datetime(date), prose(19), f"own{number}"), **given, **said)
        await _learn(api, mail("evil", "bad", "", prose(19), "bad"), **given)
        await local.drained()
        assert await _label(api, id="<bad@a.example>", label="spam", collection=collection) == ACCEPTED
        await local.drained()
        _, answer = await api.ask(mail("shop", "asked", "", prose(19), "asked"), **given)
        assert (answer["witness"], answer["verdict"] == "near_bad") == (witness, not is_said)
    for wrong in ("yesterday", "1969-12-31T00:00:00Z", "9998-01-01T00:00:00Z"):
        status, answer = await api.ask(mail("shop", "asked", "", "", "a"), **given, **{"nearstream-observed-at": wrong})
        assert (status, answer["error"]) == (400, "invalid_time")


async def test_a_label_that_many_match_is_suspended_until_somebody_decides(
    kafka: str, redis_url: str, tmp_path: Path
) -> None:
    rules = tmp_path / "alerts.toml"
    rules.write_text("[label_flood]\nlimit = 2\nwindow_seconds = 3600\n")
    async with _deployed(kafka, redis_url, tmp_path, bulk_count="30") as (local, api):
        with local.worker(), local.changed(alerts=str(rules)).worker("alert"):
            await local.send([local.document("a", TEXT)])
            await local.drained()
            given_ms = time.time_ns() // 1_000_000 - 3_600_000
            label = label_record(local.topic(SIGNATURES), "default/a", Label(label="spam", weight=5), given_ms)
            await local.send([label])
            await local.drained()
            await local.send([local.document(f"copy{number}", TEXT) for number in range(45)])

            async def is_suspended() -> bool:
                return (await api.ask(TEXT))[1]["label_state"] == "suspended"

            await until(is_suspended)
            assert await _verdict(api, TEXT) == ("bulk", _counts(spam=5))
            (alert,) = [decode_json(Alert, record.value or b"") for record in await local.read(ALERTS.name)]
            assert (alert.name, alert.limit, alert.founder) == ("label_flood", 40.0, "a")
            api.feed.alarms.add(alert)

            async def is_shown() -> bool:
                return alert in api.feed.state("").alerts

            async def is_decided() -> bool:
                return not await is_shown()

            await until(is_shown)
            assert await _labels(api) == ([("a", "spam", 5, given_ms)], "suspended")
            for name, state in (("copy1", "suspended"), ("copy2", "")):  # two later ones say that it is spam indeed
                assert await _label(api, id=name, label="spam") == ACCEPTED
                await local.drained()
                assert (await _labels(api))[1] == state
            assert await _verdict(api, TEXT) == ("known_bad", _counts(spam=7))
            assert await _label(api, id="copy3", label="ham", weight=3) == ACCEPTED
            await local.drained()
            assert (await _labels(api))[1] == "suspended"
            done = local.run("label", "confirm", alert.subject)
            await until(is_decided)
            assert (await _labels(api))[1] == "confirmed"
            assert (done.returncode, done.stdout.count(b"copy")) == (0, 3), done
            assert await _verdict(api, TEXT) == ("bulk", _counts(spam=7, ham=3))
            assert local.run("label", "revoke", alert.subject).returncode == 0
            await local.drained()
            assert await _verdict(api, TEXT) == ("bulk", _counts())
            assert await _labels(api) == ([], "")
            assert await is_decided()
            assert local.run("label", "revoke", alert.subject).returncode == 1
            assert local.run("label", "confirm", alert.subject).returncode == 0  # beforehand
            told = [decode_json(LabelChange, record.value or b"") for record in await local.read(LABELS_CHANGED.name)]
            assert {(each.kind, each.weight, each.document_id, each.family) for each in told} == {
                *(("spam", weight, name, alert.subject) for name, weight in (("a", 5), ("copy1", 1), ("copy2", 1))),
                ("ham", 3, "copy3", alert.subject),
                *((None, 0, name, alert.subject) for name in ("a", "copy1", "copy2", "copy3")),
            }


async def _labels(api: Api) -> tuple[list[tuple[object, ...]], object]:
    """Return the labels of the family of `a`, with the times when they were given, and whether they count."""
    _, answer = await api.send("GET", "/v1/families/a/members?limit=1")
    labels = cast(list[dict[str, str]], answer["labels"])
    given = [datetime.fromisoformat(each["since"]).timestamp() * 1000 for each in labels]
    named = [(each["id"], each["label"], each["weight"]) for each in labels]
    return [(*each, round(ms)) for each, ms in zip(named, given, strict=True)], answer["label_state"]


def _array(signature: Signature) -> object:
    return json.loads(encode_signature_line(signature))


async def test_a_token_labels_documents_of_its_collections_only(redis_url: str) -> None:
    async with served(redis_url, kafka="127.0.0.1:1", api_token=LINE) as api:
        # One token is a line, so the client sends its first word.
        given = {"Authorization": f"Bearer {LINE.split()[0]}"}
        status, answer = await api.send("POST", "/v1/label", b'{"id": "a", "label": "spam"}', **JSON, **given)
        assert (status, answer["error"]) == (403, "collection_forbidden")
        status, answer = await api.send("DELETE", "/v1/label/news/a", **given)
        assert (status, answer["error"]) == (403, "collection_forbidden")
        status, answer = await api.send("DELETE", "/v1/label/mail/a", **given)
        assert (status, answer["error"]) == (503, "kafka_unavailable")


async def test_a_frozen_kafka_delays_no_verdict_and_is_used_again_after_it(
    broker: LocalServer, redis_url: str, tmp_path: Path
) -> None:
    async with _deployed(broker.address, redis_url, tmp_path, **HASTY) as (local, api):
        given = {"Content-Type": "text/plain", "nearstream-id": "a"}
        await _learn(api, TEXT, **given)
        await asyncio.to_thread(broker.pause)
        try:
            for _ in range(20):
                status, answer = await api.send("POST", "/v1/check?learn=1", TEXT, **given)  # while Kafka is frozen
                assert (status, answer["learned"]) == (200, False)
                assert answer["learn_reason"] in ("deadline", "kafka_unavailable")
            status, answer = await api.send("DELETE", "/v1/documents/default/a")
            assert (status, answer["error"]) == (503, "kafka_unavailable")
        finally:
            await asyncio.to_thread(broker.resume)
        await _learn(api, OTHER, **given)
        assert {record.key for record in await local.read(DOCUMENTS.name) if record.value} == {b"a"}


async def test_a_change_that_is_not_meant_and_a_body_that_cannot_be_read_are_refused(redis_url: str) -> None:
    as_json = {"Content-Type": "application/json"}
    async with served(redis_url) as api:
        for method, path, body, headers, status, error in (
            ("POST", "/v1/check?learn=2", TEXT, {}, 400, "bad_request"),
            ("POST", "/v1/check?learn=1", TEXT, {"Origin": "https://a.example"}, 403, "cross_origin"),
            ("POST", "/v1/check?learn=1", "{", as_json, 400, "not_json"),
            ("POST", "/v1/check?learn=1", "{}", as_json, 400, "no_content"),
            ("DELETE", "/v1/documents/default/a", "", {"Origin": "null"}, 403, "cross_origin"),
            ("DELETE", "/v1/documents/No/a", "", {}, 400, "invalid_message"),
            ("DELETE", "/v1/documents/default/a%0Ab", "", {}, 400, "invalid_id"),
            ("DELETE", "/v1/documents/default/", "", {}, 404, "not_found"),
            ("GET", "/v1/documents/default/a", "", {}, 405, "method_not_allowed"),
        ):
            answer = await api.send(method, path, body, **{"Content-Type": "text/plain", **headers})
            assert (answer[0], answer[1]["error"]) == (status, error)
