"""Alerts sent by HTTP."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from msgspec import UNSET
from msgspec.structs import replace
from prometheus_client import REGISTRY

from nearstream.schemas.alerts.alert import Alert
from nearstream.schemas.topics.codec import decode_json
from nearstream.workers.config.alert_rules import WebhookTarget
from nearstream.workers.http import webhooks
from nearstream.workers.http.webhooks import Webhooks, link_of, request_of
from tests.support.turns import until
from tests.support.webhooks import Receiver, receiving

EXAMPLE = decode_json(Alert, (Path(__file__).parents[4] / "schemas/examples/alert.json").read_bytes())
NOW = datetime.now(UTC)


def alert(number: int = 0, **fields: Any) -> Alert:  # noqa: ANN401
    return replace(EXAMPLE, **({"event_id": f"{number:032x}", "since": NOW} | fields))


@asynccontextmanager
async def sending(
    *targets: WebhookTarget, holds_back: Callable[[Alert], bool] = lambda _: False
) -> AsyncIterator[Webhooks]:
    sender = Webhooks(targets, holds_back=holds_back)
    task = asyncio.create_task(sender.run())
    try:
        yield sender
    finally:
        task.cancel()
        await asyncio.wait([task])


def target(receiver: Receiver, name: str = "ops", **fields: Any) -> WebhookTarget:  # noqa: ANN401
    return WebhookTarget(name, f"http://{receiver.address}/hook", **({"form": "alertmanager"} | fields))


def counted(outcome: str, name: str) -> float:
    return REGISTRY.get_sample_value("nearstream_webhooks_total", {"target": name, "outcome": outcome}) or 0.0


async def test_an_alert_arrives_as_alertmanager_writes_it() -> None:
    async with receiving() as receiver, sending(target(receiver)) as sender:
        sender.queue([alert()])
        await until(lambda: bool(receiver.got))
    ((body, headers),) = receiver.got
    message = json.loads(body)
    assert (message["version"], message["status"], message["receiver"]) == ("4", "firing", "nearstream")
    (one,) = message["alerts"]
    assert one["labels"] == {"alertname": "duplicate_storm", "collection": "news", "subject": EXAMPLE.subject}
    assert (datetime.fromisoformat(one["startsAt"]), one["endsAt"]) == (NOW, "0001-01-01T00:00:00Z")
    told = one["annotations"]["summary"]
    assert "201 documents joined family" in told
    assert told.endswith(", first seen as a-1041, from host a.example, sender deals.example")
    assert headers["nearstream-event-id"] == alert().event_id


def test_the_end_of_an_alert_has_the_fingerprint_of_its_beginning() -> None:
    ended = alert(1, state="resolved", until=EXAMPLE.since)
    receiver = Receiver(address="a.example")
    (first, _), (last, _) = (request_of(target(receiver), each) for each in (alert(), ended))
    one, other = (json.loads(body)["alerts"][0] for body in (first, last))
    assert one["fingerprint"] == other["fingerprint"]
    assert (other["status"], other["endsAt"]) == ("resolved", "2026-03-02T09:20:00Z")


def test_a_text_for_slack_holds_no_link_or_mention_from_an_id() -> None:
    body, _ = request_of(target(Receiver(address="a"), form="slack"), alert(founder="<!channel> & <https://x|y>"))
    text = json.loads(body)["text"]
    assert "first seen as &lt;!channel&gt; &amp; &lt;https://x|y&gt;" in text
    assert "<" not in text


async def test_a_silent_alert_and_one_about_a_time_long_past_are_not_sent() -> None:
    """A worker that reads a topic from its beginning would announce the storms of a month."""
    past = NOW - timedelta(days=1, seconds=EXAMPLE.window_seconds + 1)
    silent = alert(4)
    given = [alert(1, since=past), silent, alert(2, since=past, until=NOW), alert(3, since=past, window_seconds=9_000)]
    async with receiving() as receiver, sending(target(receiver, "replayed"), holds_back=silent.__eq__) as sender:
        sender.queue(given)
        await until(lambda: len(receiver.got) == 2)
    assert receiver.ids == [alert(2).event_id, alert(3).event_id]
    assert (counted("outdated", "replayed"), counted("silent", "replayed")) == (1, 1)


async def test_an_alert_that_is_offered_again_is_sent_once() -> None:
    async with receiving() as receiver, sending(target(receiver)) as sender:
        sender.queue([alert(1), alert(1), alert(2), alert(1), alert(3)])
        await until(lambda: len(receiver.got) == 3)
    assert receiver.ids == [alert(number).event_id for number in (1, 2, 3)]


async def test_a_failing_target_gets_the_alert_when_it_works_again_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(webhooks, "PAUSES", (0.01,) * 7)
    async with receiving(500, 503, 429) as receiver, sending(target(receiver, "failing")) as sender:
        sender.queue([alert(1), alert(2)])
        await until(lambda: len(receiver.got) == 5)
    assert receiver.ids == [alert(1).event_id] * 4 + [alert(2).event_id]
    assert counted("retried", "failing") == 3
    assert counted("sent", "failing") >= 1


async def test_a_redirect_is_not_followed_and_a_refusal_is_not_tried_again() -> None:
    async with receiving(302, 400) as receiver, sending(target(receiver, "refusing")) as sender:
        sender.queue([alert(1), alert(2), alert(3)])
        await until(lambda: len(receiver.got) == 3)
        await until(lambda: counted("sent", "refusing") == 1)
    assert counted("refused", "refusing") == 2


async def test_f22_a_target_that_does_not_answer_holds_up_no_other_and_its_queue_is_bounded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(webhooks, "REQUEST_SECONDS", 60.0)
    monkeypatch.setattr(webhooks, "QUEUE", 100)
    silent = await asyncio.start_server(lambda *_: None, "127.0.0.1", 0)
    blocked = Receiver(address="{}:{}".format(*silent.sockets[0].getsockname()))
    async with receiving() as receiver, sending(target(blocked, "silent"), target(receiver, "well")) as sender:
        for start in range(0, 150, 50):
            sender.queue([alert(number) for number in range(start, start + 50)])
            await until(lambda start=start: len(receiver.got) == start + 50)  # type: ignore[misc]
    assert counted("dropped", "silent") == 49  # one is being sent
    assert counted("dropped", "well") == 0
    silent.close()


def test_an_alert_leads_to_its_family_or_reason_on_the_page() -> None:
    for fields, address in [
        ({}, f"family/{EXAMPLE.subject}/news/a-1041"),
        ({"founder": None}, f"family/{EXAMPLE.subject}"),
        ({"founder": "a/b?c#<d>"}, f"family/{EXAMPLE.subject}/news/a%2Fb%3Fc%23%3Cd%3E"),
        ({"name": "dead_letters", "subject": "not_json", "collection": "*", "founder": UNSET}, "letters/not_json"),
    ]:
        link = f"https://near.example/base/#/{address}"
        assert link_of(alert(**fields), "https://near.example/base/") == link
        for form in ("alertmanager", "slack"):
            to = WebhookTarget("ops", "https://hooks.example", form=form)
            body, _ = request_of(to, alert(**fields), "https://near.example/base")
            assert link in body.decode()
            assert b"near.example" not in request_of(to, alert(**fields))[0]
