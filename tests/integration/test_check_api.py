"""`POST /v1/check` answers what a document is, and refuses what is no proper request."""

import asyncio
import gzip
import json
from collections.abc import AsyncIterator
from html import escape

import aiohttp
import pytest

from nearstream.workers.http import routes
from nearstream.workers.redis.server.client import ask
from tests.support.api import Api, served
from tests.support.deployment import TEXTS

TOKEN = "a-token-of-twenty-characters"  # noqa: S105 - of the test
TEXT, OTHER = TEXTS[0], TEXTS[5]
NEAR = TEXT.replace(" the ", " each ", 1)


@pytest.fixture
async def api(redis_url: str) -> AsyncIterator[Api]:
    async with served(redis_url, bulk_count="3") as running:
        yield running


async def test_an_unknown_text_is_none_and_a_copy_is_near_duplicate(api: Api) -> None:
    await api.admit("a", TEXT)
    status, answer = await api.ask(OTHER)
    assert (status, answer["verdict"], answer["match"], answer["family"]) == (200, "none", None, None)
    status, answer = await api.ask(NEAR)
    assert (status, answer["verdict"], answer["relation"]) == (200, "near_duplicate", "near_duplicate")
    assert answer["match"] == {"id": "a", "version": answer["match"]["version"], "observed_at": "2025-10-09T08:53:20Z"}
    assert 0.5 < answer["low"] <= answer["resemblance"] <= answer["high"] <= 1
    assert answer["distance"] > 0
    assert (answer["size"], answer["count_1h"], answer["score"]) == (1, 0, 0)
    assert answer["first_seen"] == answer["last_seen"] == "2025-10-09T08:53:20Z"
    _, answer = await api.ask(TEXT)
    assert (answer["verdict"], answer["relation"], answer["resemblance"]) == ("near_duplicate", "exact_duplicate", 1.0)
    assert not answer["degraded"]
    await api.admit("whole", f"{OTHER} {TEXTS[6]}")
    _, answer = await api.ask(OTHER)  # a part of a document is no copy of it
    assert (answer["verdict"], answer["relation"], answer["match"]["id"]) == ("none", "containment", "whole")
    assert (answer["family"], answer["size"]) == (None, 0)
    status, metrics = await api.get("/metrics")
    assert status == 200
    assert b'nearstream_check_requests_total{verdict="none"} ' in metrics
    assert b"nearstream_check_seconds_bucket" in metrics


async def test_a_family_that_grows_becomes_bulk(api: Api) -> None:
    await api.admit("a", TEXT)
    for number in range(3):
        assert (await api.ask(NEAR))[1]["verdict"] == "near_duplicate"
        await api.admit(f"copy {number}", TEXT)
    _, answer = await api.ask(NEAR)
    assert (answer["verdict"], answer["size"]) == ("bulk", 4)
    assert (answer["count_1h"], answer["count_24h"], answer["count_7d"]) == (3, 3, 3)
    assert 0.98 < answer["score"] < 1
    assert answer["first_seen"] < answer["last_seen"]


async def test_new_text_is_told_where_it_stands_in_the_text_as_it_was_sent(api: Api) -> None:
    await api.admit("a", TEXT)
    before, after = TEXT[: TEXT.index(" ", 400)], TEXT[TEXT.index(" ", 400) :]
    new = "«Zwölf Störche», — so heißt es —, haben heute (gegen 9:30 Uhr) das alte Dach am Hafen wieder bezogen…"
    text = f"\n\n  “{before.replace(' ', '  -- ')}”\n\n{new}\n{after}"
    for body, kind in ((text, "text/plain"), (json.dumps({"text": text}), "application/json")):
        _, answer = await api.ask(body.encode(), Content_Type=kind)
        (start, end), *others = answer["novel_spans"]
        assert (abs(start - text.index(new)) <= 40, abs(end - text.index(new) - len(new)) <= 40) == (True, True)
        assert all(last - first <= end - start for first, last in others)
    _, answer = await api.ask(f"  {OTHER}")
    assert (answer["novel_spans"], answer["removed_spans"]) == ([[0, len(OTHER) + 2]], [])
    _, answer = await api.ask(f"{TEXT[:4_000]} {TEXT[4_600:]}")
    assert sum(end - start for start, end in answer["removed_spans"]) == pytest.approx(600, abs=100)


async def test_a_json_document_is_compared_in_its_collection(api: Api) -> None:
    await api.admit("a", TEXT, collection="mail")
    for collection, verdict in (("mail", "near_duplicate"), ("other", "none")):
        document = json.dumps({"text": TEXT, "collection": collection})
        assert (await api.ask(document, Content_Type="application/json"))[1]["verdict"] == verdict
        assert (await api.ask(TEXT, nearstream_collection=collection))[1]["verdict"] == verdict
    compressed = gzip.compress(json.dumps({"text": TEXT, "collection": "mail"}).encode())
    answer = await api.ask(compressed, Content_Type="application/json", Content_Encoding="gzip")
    assert answer[1]["verdict"] == "near_duplicate"


async def test_lines_get_the_answers_of_single_questions_and_a_bad_line_its_error(api: Api) -> None:
    for number, text in enumerate(TEXTS[:8]):
        await api.admit(f"{number}", text)
    texts = [*TEXTS[:12], NEAR, f"{OTHER} {TEXTS[20]}", TEXT[:2000], "two words", ""]
    documents = [json.dumps({"text": text}) for text in texts]
    documents += [json.dumps({"text": TEXT, "collection": "other", "against": ["default"]})]
    singles = [(await api.ask(each, Content_Type="application/json"))[1] for each in documents]
    lines = [*documents[:7], "{", " ", *documents[7:]]
    url, kind = f"http://{api.address}/v1/check", {"Content-Type": "application/x-ndjson"}
    async with api.session.post(url, data="\n".join(lines), headers=kind) as response:
        status, told = response.status, [json.loads(line) for line in (await response.read()).splitlines()]
    assert status == 200
    assert told.pop(7)["error"] == "not_json"
    assert told == singles
    for many, query in ((b"{}\n" * 65, ""), (b"\n", ""), (b"{}", "?learn=1"), (b"{}", "?bare=1")):
        status, answer = await api.send("POST", f"/v1/check{query}", many, **kind)
        assert (status, answer["error"]) == (400, "bad_request")


async def test_references_are_asked_too_and_only_those_that_a_token_may_name(redis_url: str) -> None:
    async with served(redis_url, api_token=f"{TOKEN} mail 0 against=good") as api:
        api.session.headers["Authorization"] = f"Bearer {TOKEN}"
        await api.admit("g", TEXT, collection="good")
        for question in (
            {"nearstream_collection": "mail"},  # the token names it
            {"nearstream_collection": "mail", "nearstream_against": "good"},
            {"nearstream_collection": "mail", "Content_Type": "message/rfc822"},
        ):
            body = f"Subject: x\n\n{TEXT}" if "Content_Type" in question else TEXT
            status, answer = await api.ask(body, **question)
            assert (status, answer["verdict"], answer["match"]) == (200, "none", None)
            (match,) = answer["references"]
            assert (match["collection"], match["id"]) == ("good", "g")
            assert match["relation"] in ("exact_duplicate", "near_duplicate")
        status, answer = await api.ask(OTHER, nearstream_collection="mail")
        assert answer["references"] == []
        for against in ("bad", "good bad"):
            status, answer = await api.ask(TEXT, nearstream_collection="mail", nearstream_against=against)
            assert (status, answer["error"]) == (403, "collection_forbidden")
        status, answer = await api.ask(TEXT, nearstream_collection="mail", nearstream_against="a b c d e")
        assert (status, answer["error"]) == (400, "invalid_message")


async def test_a_web_page_is_compared_by_its_text(api: Api) -> None:
    await api.admit("a", TEXT)
    menu = "".join(f"<a href='/{number}'>Topic {number} of our site</a>" for number in range(200))
    page = f"<html><body><nav>{menu}</nav><article><p>{escape(TEXT)}</article></body></html>"
    for content_type in ("text/html; charset=utf-8", "application/xhtml+xml"):
        async with asyncio.timeout(60):  # a busy machine may take longer for a page than it gets, and strips its tags
            while (answer := (await api.ask(page, Content_Type=content_type))[1])["verdict"] != "near_duplicate":
                pass
        assert (answer["relation"], answer["match"]["id"]) == ("near_duplicate", "a")  # which has no menu
        assert (answer["resemblance"], answer["redundant"]) == (1.0, False)
        assert answer["low_confidence"] == ["surroundings_differ"]
    status, answer = await api.ask(json.dumps({"html": page}), Content_Type="application/json")
    assert (status, answer["error"]) == (415, "unsupported_content_type")


async def test_a_text_too_short_to_compare_is_unknown_unless_it_is_known(api: Api) -> None:
    for text in ("", " \n", "Hello you"):
        status, answer = await api.ask(text or " ")
        assert (status, answer["verdict"], answer["low_confidence"]) == (200, "unknown", ["below_min_length"])
        assert not answer["degraded"]
    await api.admit("a", "Hello you")
    assert (await api.ask("Hello you"))[1]["verdict"] == "near_duplicate"


async def test_a_body_that_cannot_be_read_is_refused(api: Api) -> None:
    for body, headers, status, error in [
        (b"", {}, 400, "empty_value"),
        (b"{", {"Content_Type": "application/json"}, 400, "not_json"),
        (b"{}", {"Content_Type": "application/json"}, 400, "no_content"),
        (b"x", {"nearstream_observed_at": "soon"}, 400, "invalid_time"),
        (b"x", {"Content_Encoding": "gzip"}, 415, "extraction_failed"),
        (b"%PDF-1.7", {}, 415, "extraction_failed"),
        (b"x", {"Content_Type": "image/png"}, 415, "unsupported_content_type"),
        (b"x" * 1_048_577, {}, 413, "too_large"),
        (gzip.compress(bytes(20_000_000), mtime=0), {"Content_Encoding": "gzip"}, 413, "decompression_limit"),
        (b"x" * 38_000_000, {"Content_Type": "message/rfc822"}, 413, "too_large"),
    ]:
        answer = await api.ask(body, **headers)
        assert (answer[0], answer[1]["error"]) == (status, error)
        assert answer[1]["detail"]
    assert (await api.ask(OTHER))[0] == 200


async def test_a_body_that_would_be_refused_is_not_waited_for(api: Api) -> None:
    for headers, status in [
        (b"Content-Type: image/png\r\nContent-Length: 9", b"415"),
        (b"Content-Type: image/png\r\nTransfer-Encoding: chunked", b"415"),
        (b"Content-Type: message/rfc822\r\nContent-Length: 38000000", b"413"),
        (b"Content-Type: text/plain\r\nContent-Length: 4194305", b"413"),
        (b"Content-Type: text/plain\r\nContent-Length: 4194305\r\nExpect: 100-continue", b"413"),
        (b"Content-Type: text/plain\r\nContent-Length: 9\r\nExpect: 100-continue", b"100"),
    ]:
        answer = await _answer(api, b"POST /v1/check HTTP/1.1\r\nHost: localhost\r\n" + headers, until=b"\r\n")
        assert answer.split()[1] == status


async def _answer(api: Api, head: bytes, until: bytes = b"") -> bytes:
    """Send the head of a request alone, and return its answer: to the end, or until these bytes."""
    host, port = api.address.split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(head + b"\r\n\r\n")
    try:
        async with asyncio.timeout(60):
            return await (reader.readuntil(until) if until else reader.read())
    finally:
        writer.close()


async def test_a_body_without_length_is_bounded(api: Api) -> None:
    async def endless() -> AsyncIterator[bytes]:
        for _ in range(300):
            yield b"x" * 65_536

    url = f"http://{api.address}/v1/check"
    try:
        async with api.session.post(url, data=endless(), headers={"Content-Type": "text/plain"}) as response:
            assert response.status == 413
    except aiohttp.ClientConnectionError:
        pass  # The server has closed the connection while the client was still sending.
    assert (await api.ask(OTHER))[0] == 200


async def test_headers_that_cannot_be_read_are_refused_and_never_quoted(api: Api) -> None:
    for head, status in [
        (b"POST /v1/check HTTP/1.1\r\nHost: localhost\r\nX-Long: " + b"x" * 9_000, b"431"),
        (
            b"POST / HTTP/1.1\r\nHost: localhost\r\n" + b"".join(b"X-%d: x\r\n" % each for each in range(100)),
            b"431",
        ),
        (b"POST /" + b"x" * 9_000 + b" HTTP/1.1\r\nHost: localhost", b"431"),
        (b"<script> HTTP/1.1\r\nHost: localhost", b"400"),
        (b"POST /v1/check HTTP/1.1\r\nContent-Length: -1", b"400"),
    ]:
        answer = await _answer(api, head)
        assert answer.split()[1] == status
        assert b"Cache-Control: no-store" in answer
        assert b"script>" not in answer
        assert b"xxx" not in answer
        assert json.loads(answer.rpartition(b"\r\n\r\n")[2])["detail"]


async def test_each_answer_has_the_security_headers(api: Api) -> None:
    for method, path in (("POST", "/v1/check"), ("GET", "/metrics"), ("GET", "/nothing"), ("GET", "/v1/check")):
        async with api.session.request(method, f"http://{api.address}{path}", data=b"x") as response:
            assert response.headers["X-Content-Type-Options"] == "nosniff"
            assert response.headers["Referrer-Policy"] == "no-referrer"
            assert response.headers["Cache-Control"] == "no-store"
            assert response.headers["Content-Security-Policy"].startswith("default-src 'none'; ")
            assert "Set-Cookie" not in response.headers
    async with api.session.get(f"http://{api.address}/v1/check") as response:
        assert (response.status, response.headers["Allow"]) == (405, "POST")
    assert (await api.get("/nothing"))[0] == 404


async def test_a_token_is_for_its_collections_and_its_rate(redis_url: str) -> None:
    lines = f"# for mail\n{TOKEN} mail,news\n\nanother-token-of-a-crawler * 0.1\n"
    async with served(redis_url, api_token=lines) as api:
        bound, slow = {"Authorization": f"Bearer {TOKEN}"}, {"Authorization": "Bearer another-token-of-a-crawler"}
        assert (await api.ask(TEXT, nearstream_collection="mail", **bound))[0] == 200
        document = json.dumps({"text": TEXT, "collection": "pages"})
        for refused in (
            await api.ask(TEXT, **bound),
            await api.ask(document, Content_Type="application/json", **bound),
            await api.ask(f"Subject: x\r\n\r\n{TEXT}", Content_Type="message/rfc822", **bound),
            await api.send("POST", "/v1/check?learn=1", TEXT, **{"Content-Type": "text/plain", **bound}),
            await api.send("DELETE", "/v1/documents/pages/a", **bound),
        ):
            assert (refused[0], refused[1]["error"]) == (403, "collection_forbidden")
        assert (await api.send("DELETE", "/v1/documents/mail/a", **bound))[0] == 503
        assert (await api.ask(document, Content_Type="application/json", **slow))[0] == 200
        status, answer = await api.ask(document, Content_Type="application/json", **slow)
        assert (status, answer["error"]) == (429, "rate_limited")
        assert (await api.ask(TEXT, nearstream_collection="news", **bound))[0] == 200
        for given in ("", "Bearer another", "Bearer \xe9", f"Basic {TOKEN}", TOKEN, "Bearer # for mail"):
            status, answer = await api.ask(TEXT, Authorization=given)
            assert (status, answer["error"]) == (401, "unauthorized")
        async with aiohttp.ClientSession() as stranger:
            for path, status in (("/metrics", 401), ("/nothing", 401), ("/healthz", 200), ("/readyz", 200)):
                async with stranger.get(f"http://{api.address}{path}") as response:
                    assert (path, response.status) == (path, status)


async def test_ready_says_whether_there_is_an_index(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(routes, "_READY_SECONDS", 60.0)
    assert json.loads((await api.get("/readyz"))[1]) == {"ready": True, "why": "", "halted": [], "workers": []}
    await ask(api.index.client, "DEL", api.index.address.key)
    status, body = await api.get("/readyz")
    assert status == 503
    assert "holds no index" in json.loads(body)["why"]
    _, answer = await api.ask(TEXT)
    assert (answer["verdict"], answer["degraded"], answer["reason"]) == ("unknown", True, "index_lost")
    assert (await api.get("/healthz"))[0] == 200
