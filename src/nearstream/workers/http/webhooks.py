"""Send alerts by HTTP to targets of the settings."""

import asyncio
import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from hashlib import blake2b
from urllib.parse import quote

import aiohttp
import msgspec

from nearstream.schemas.alerts.alert import Alert
from nearstream.workers.config.alert_rules import WebhookTarget
from nearstream.workers.monitoring.metrics import WEBHOOKS

ID_HEADER = "nearstream-event-id"

_NEVER = "0001-01-01T00:00:00Z"  # how Alertmanager says that an alert has no end yet
QUEUE = 1_000  # alerts that wait for a target
SENT_IDS = 1_000  # ids that are not sent again to a target
PAUSES = (0.1, 0.5, 2.0, 10.0, 30.0, 60.0, 60.0)  # seconds between the tries for one alert
REQUEST_SECONDS = 5.0
ANSWER_BYTES = 64 * 1024
OUTDATED_SECONDS = 86_400  # older alerts come from a replay, or from documents of the past
OUTCOMES = ("sent", "retried", "refused", "failed", "dropped", "outdated", "silent")
_RETRIABLE = (408, 425, 429)
log = logging.getLogger(__name__)


def request_of(target: WebhookTarget, alert: Alert, public_url: str = "") -> tuple[bytes, dict[str, str]]:
    """Return the body and the headers of the request about an alert.

    A receiver that keeps the ids of `nearstream-event-id` handles each alert once. Without the address of the live page
    no link is sent.
    """
    link = link_of(alert, public_url) if public_url else ""
    body = msgspec.json.encode(_slack(alert, link) if target.form == "slack" else _alertmanager(alert, link))
    return body, {"content-type": "application/json", ID_HEADER: alert.event_id}


def link_of(alert: Alert, public_url: str) -> str:
    """Return the address of what an alert is about on the live page: a family, or the reason of dead letters."""
    founder = [alert.collection, alert.founder] if alert.founder else []
    parts = ["letters", alert.subject] if alert.name == "dead_letters" else ["family", alert.subject, *founder]
    return f"{public_url.rstrip('/')}/#/{'/'.join(quote(part, safe='') for part in parts)}"


def summary(alert: Alert) -> str:
    """Return one sentence about an alert. Ids in it come from outside."""
    what = {
        "duplicate_storm": f"{alert.value:.0f} documents joined family {alert.subject} of {alert.collection}",
        "new_family_on_sites": f"{alert.value:.0f} sites carry the new family {alert.subject} of {alert.collection}",
        "new_family_of_size": f"the new family {alert.subject} of {alert.collection} has {alert.value:.0f} documents",
        "label_flood": f"{alert.value:.0f} match the label of family {alert.subject} of {alert.collection}, suspended,",
        "dead_letters": f"{alert.value:.0f} records were refused: {alert.subject}",
    }[alert.name]
    founder = f", first seen as {alert.founder}" if alert.founder else ""
    origins = f", from {', '.join(alert.origins)}" if alert.origins else ""
    ended = "has ended: " if alert.state == "resolved" else ""
    return f"{alert.name}: {ended}{what} within {alert.window_seconds} s (limit {alert.limit:.0f}){founder}{origins}"


def _alertmanager(alert: Alert, link: str) -> dict[str, object]:
    labels = {"alertname": alert.name, "collection": alert.collection, "subject": alert.subject}
    annotations = {"summary": summary(alert)} | ({"link": link} if link else {})
    fingerprint = blake2b("\n".join(labels.values()).encode(), digest_size=8).hexdigest()
    return {
        "version": "4",
        "groupKey": f'{{}}:{{alertname="{alert.name}", subject="{alert.subject}"}}',
        "truncatedAlerts": 0,
        "status": alert.state,
        "receiver": "nearstream",
        "groupLabels": {"alertname": alert.name, "subject": alert.subject},
        "commonLabels": labels,
        "commonAnnotations": annotations,
        "externalURL": "",
        "alerts": [
            {
                "status": alert.state,
                "labels": labels,
                "annotations": annotations,
                "startsAt": _time(alert.since),
                "endsAt": _NEVER if alert.until is None else _time(alert.until),
                "generatorURL": link,
                "fingerprint": fingerprint,
            }
        ],
    }


def _slack(alert: Alert, link: str) -> dict[str, object]:
    """Return a text for Slack, in which an id cannot be a link or a mention."""
    escaped = summary(alert).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return {"text": f"{escaped} {link}".rstrip(), "mrkdwn": False}


def _time(time: datetime) -> str:
    return time.isoformat().replace("+00:00", "Z")


def _nobody(_: Alert) -> bool:
    return False


@dataclass
class _Line:
    target: WebhookTarget
    waiting: asyncio.Queue[Alert] = field(default_factory=lambda: asyncio.Queue(QUEUE))
    sent: deque[str] = field(default_factory=lambda: deque(maxlen=SENT_IDS))


class Webhooks:
    """Sends alerts to all targets, from a thread of its own.

    Alerts wait in a queue of bounded length for each target. What finds no room is counted and dropped, as is what a
    target refuses. The topic of alerts has all of them.
    """

    def __init__(
        self,
        targets: Iterable[WebhookTarget],
        public_url: str = "",
        holds_back: Callable[[Alert], bool] = _nobody,
    ) -> None:
        """Prepare to send to these targets, but no alert that is held back, because a person has silenced it.

        Without the address of the live page no links are sent.
        """
        self._public_url, self._holds_back = public_url, holds_back
        self._lines = [_Line(target) for target in targets]
        for line in self._lines:
            for outcome in OUTCOMES:
                WEBHOOKS.labels(line.target.name, outcome)  # from 0 on, so that the first one is an increase
        self._loop: asyncio.AbstractEventLoop | None = None

    def offer(self, alerts: Sequence[Alert]) -> None:
        """Queue alerts for all targets, from one thread. It never waits.

        The first alert starts the thread that sends until the process ends.
        """
        if not alerts or not self._lines:
            return
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
            sending = partial(self._loop.run_until_complete, self.run())
            threading.Thread(target=sending, name="webhooks", daemon=True).start()
        self._loop.call_soon_threadsafe(self.queue, alerts)

    def queue(self, alerts: Sequence[Alert]) -> None:
        """Queue alerts, in the thread of the event loop."""
        for line in self._lines:
            for alert in alerts:
                try:
                    if _is_outdated(alert):
                        WEBHOOKS.labels(line.target.name, "outdated").inc()
                    else:
                        line.waiting.put_nowait(alert)
                except asyncio.QueueFull:
                    WEBHOOKS.labels(line.target.name, "dropped").inc()

    async def run(self) -> None:
        """Send what is queued, to each target by itself. Never returns."""
        await asyncio.gather(*(self._send_line(line) for line in self._lines))

    async def _send_line(self, line: _Line) -> None:
        timeout = aiohttp.ClientTimeout(REQUEST_SECONDS)
        connector = aiohttp.TCPConnector(limit=1, force_close=True, use_dns_cache=False)
        async with aiohttp.ClientSession(connector=connector, timeout=timeout, trust_env=False) as session:
            while True:
                alert = await line.waiting.get()
                if self._holds_back(alert):
                    WEBHOOKS.labels(line.target.name, "silent").inc()
                elif alert.event_id not in line.sent:
                    outcome = await self._send(session, line, alert)
                    WEBHOOKS.labels(line.target.name, outcome).inc()

    async def _send(self, session: aiohttp.ClientSession, line: _Line, alert: Alert) -> str:
        """Send an alert with several tries, and return `sent`, `refused` or `failed`."""
        for pause in (*PAUSES, None):
            outcome, detail = await _try(session, line.target, alert, self._public_url)
            if outcome == "sent":
                line.sent.append(alert.event_id)
                return outcome
            if outcome == "refused" or pause in (PAUSES[0], None):  # the first failure and the last one
                log.warning("webhook %s: %s: %s", line.target.name, outcome, detail)
            if outcome == "refused" or pause is None:
                break
            WEBHOOKS.labels(line.target.name, "retried").inc()
            await asyncio.sleep(pause)
        return outcome


async def _try(session: aiohttp.ClientSession, target: WebhookTarget, alert: Alert, public_url: str) -> tuple[str, str]:
    """Send an alert once, and return the outcome with its reason, which never holds the address."""
    body, headers = request_of(target, alert, public_url)
    try:
        async with session.post(target.url, data=body, headers=headers, allow_redirects=False) as response:
            await response.content.read(ANSWER_BYTES)
            if 200 <= response.status < 300:
                return "sent", ""
            is_passing = response.status >= 500 or response.status in _RETRIABLE
            return "failed" if is_passing else "refused", f"HTTP status {response.status}"
    except TimeoutError:
        return "failed", f"no answer within {REQUEST_SECONDS:g} s"
    except aiohttp.ClientConnectorError as error:
        return "failed", error.os_error.strerror or type(error).__name__
    except aiohttp.InvalidURL:
        return "refused", "its address is not valid"
    except aiohttp.ClientError as error:
        return "failed", type(error).__name__


def _is_outdated(alert: Alert) -> bool:
    last = alert.until or alert.since + timedelta(seconds=alert.window_seconds)
    return last.timestamp() + OUTDATED_SECONDS < time.time()
