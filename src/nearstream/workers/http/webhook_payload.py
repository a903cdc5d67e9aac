"""Alerts as webhooks write them."""

import hmac
from datetime import datetime
from hashlib import blake2b, sha256
from urllib.parse import quote

import msgspec

from nearstream.schemas.alerts.alert import Alert
from nearstream.workers.config.webhook_targets import WebhookTarget

ID_HEADER = "nearstream-event-id"
TIMESTAMP_HEADER = "nearstream-timestamp"
SIGNATURE_HEADER = "nearstream-signature"

_NEVER = "0001-01-01T00:00:00Z"  # how Alertmanager says that an alert has no end yet


def request_of(
    target: WebhookTarget, alert: Alert, at_seconds: int, public_url: str = ""
) -> tuple[bytes, dict[str, str]]:
    """Return the body and the headers of the request about an alert.

    A receiver that keeps the ids of `nearstream-event-id` handles each alert once. With the secret of the target it
    computes `nearstream-signature` again: `v1=` and the HMAC-SHA256, in hex, of the timestamp, a dot and the body.

    Args:
        target: Where the request goes.
        alert: The alert.
        at_seconds: The time of the request in seconds since 1970.
        public_url: Address of the live page. Empty: no link is sent.
    """
    link = link_of(alert, public_url) if public_url else ""
    body = msgspec.json.encode(_slack(alert, link) if target.form == "slack" else _alertmanager(alert, link))
    headers = {"content-type": "application/json", ID_HEADER: alert.event_id}
    if target.secret:
        digest = hmac.new(target.secret, b"%d.%b" % (at_seconds, body), sha256).hexdigest()
        headers |= {TIMESTAMP_HEADER: str(at_seconds), SIGNATURE_HEADER: f"v1={digest}"}
    return body, headers


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
    """Return an alert in the form of Alertmanager's webhook, version 4."""
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
