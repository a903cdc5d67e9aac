"""A storm of copies and a burst of unreadable records, told by a worker on real services."""

import time
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import msgspec

from nearstream.schemas.alerts.alert import ALL_COLLECTIONS, Alert, Silence, silence_key
from nearstream.schemas.documents.record import ProducerRecord
from nearstream.schemas.topics.codec import decode_json, encode_json
from nearstream.schemas.topics.table import ALERTS, DEAD_LETTERS, DOCUMENTS, SILENCES, VERDICTS
from nearstream.workers.config.alert_rules import load_alerts
from nearstream.workers.kafka.lag import PartitionLag
from nearstream.workers.monitoring.health import Health
from nearstream.workers.pipeline.alert import Alerting
from nearstream.workers.pipeline.deployment import Deployment
from nearstream.workers.redis.kept.tallies import TallyStore
from nearstream.workers.redis.server.client import Client, open_client
from tests.support.deployment import TEXTS, LocalDeployment, deployed, until
from tests.support.webhooks import Receiver, receiving

RULES = """
[duplicate_storm]
limit = 8
window_seconds = 60
[new_family_of_size]
limit = 10
window_seconds = 3600
[dead_letters]
limit = 4
window_seconds = 600
"""
WEBHOOK = """
[[webhook]]
name = "operators"
form = "alertmanager"
url = "http://{address}/"
"""
WORDS = TEXTS[0].split()[:150]


def copy(deployment: LocalDeployment, number: int, at: datetime) -> ProducerRecord:
    """Return a record of a text of which one word differs."""
    words = [*WORDS[:75], f"number{number}", *WORDS[75:]]
    document = {"id": f"copy-{number}", "text": " ".join(words), "observed_at": at.isoformat()}
    return ProducerRecord(deployment.topic(DOCUMENTS), f"copy-{number}".encode(), msgspec.json.encode(document), [])


async def alerts(deployment: LocalDeployment) -> list[Alert]:
    return [decode_json(Alert, record.value or b"") for record in await deployment.read(ALERTS.name)]


async def until_told(deployment: LocalDeployment, expected: set[tuple[str, str]]) -> None:
    async def is_told() -> bool:
        return {(alert.name, alert.state) for alert in await alerts(deployment)} == expected

    await until(is_told)


def alerting(deployment: LocalDeployment, client: Client) -> Alerting:
    made = Deployment.of(deployment.settings)
    rules = load_alerts(deployment.settings.alerts).rules
    store = TallyStore(client, deployment.settings.namespace)
    return Alerting(rules, store, deployment.topic(ALERTS), made.scheme.name, made.dead_letter_writer("alert"))


async def test_a_storm_and_a_burst_of_dead_letters_are_told_and_restated_byte_for_byte(
    kafka: str, redis_url: str, tmp_path: Path
) -> None:
    rules = tmp_path / "alerts.toml"
    began = datetime.now(UTC) - timedelta(hours=1)
    async with receiving() as receiver, deployed(kafka, redis_url, tmp_path, alerts=str(rules)) as deployment:
        rules.write_text(RULES + WEBHOOK.format(address=receiver.address))
        with deployment.worker():
            with deployment.worker("alert") as worker:
                storm = [copy(deployment, number, began + timedelta(seconds=number)) for number in range(14)]
                await deployment.send(storm)
                firing = {("duplicate_storm", "firing"), ("new_family_of_size", "firing")}
                await until_told(deployment, firing)
                worker.kill()
            await deployment.send([silence(deployment, "empty_value")])
            with deployment.worker("alert"):
                await deployment.send([copy(deployment, 14, began + timedelta(seconds=600))])
                ended = firing | {("duplicate_storm", "resolved")}
                await until_told(deployment, ended)
                for value, reason in ((b"", "empty_value"), (b"{", "not_json")):
                    broken = [ProducerRecord(deployment.topic(DOCUMENTS), None, value, []) for _ in range(6)]
                    await deployment.send(broken)
                    await until(partial(is_about, deployment, reason))
                told = {alert.event_id: alert for alert in await alerts(deployment)}
                ends = {
                    alert.event_id
                    for alert in told.values()
                    if alert.state == "resolved" or alert.subject == "not_json"
                }
                await until(partial(has_all, receiver, ends))
                silent = {alert.event_id for alert in told.values() if alert.subject == "empty_value"}
                assert len(silent) == 1
                assert not silent & set(receiver.ids)
        families = {verdict.family.id for verdict in await deployment.verdicts()}
        storms = sorted(
            (alert for alert in told.values() if alert.name == "duplicate_storm"), key=lambda one: one.state
        )
        assert [alert.state for alert in storms] == ["firing", "resolved"]
        assert {alert.subject for alert in storms} == families
        assert len(told) == 5
        verdicts, letters = await deployment.read(VERDICTS.name), await deployment.read(DEAD_LETTERS.name)
        connection = Deployment.of(deployment.settings).index_address()
        async with open_client(connection) as client:
            # A redelivery of all records restates what was told.
            again = alerting(deployment, client)
            restated = [*await again.decide(verdicts), *await again.count_letters(letters)]
            assert {sent.value for sent in restated} == {encode_json(alert) for alert in told.values()}
            await ends_by_silence(again)


def silence(deployment: LocalDeployment, reason: str) -> ProducerRecord:
    """Return that a person wants to hear no more of refused records of this reason."""
    now = datetime.now(UTC)
    said = Silence(
        collection=ALL_COLLECTIONS, name="dead_letters", subject=reason, since=now, until=now + timedelta(hours=4)
    )
    key = silence_key(ALL_COLLECTIONS, "dead_letters", reason)
    return ProducerRecord(deployment.topic(SILENCES), key, msgspec.json.encode(said), [])


async def is_about(deployment: LocalDeployment, reason: str) -> bool:
    """Return whether an alert about refused records of this reason is on the topic."""
    return any(alert.subject == reason for alert in await alerts(deployment))


async def has_all(receiver: Receiver, event_ids: set[str]) -> bool:
    """Return whether the webhook has got these alerts. Those before the crash of the worker may be lost."""
    return event_ids <= set(receiver.ids)


async def ends_by_silence(alerts_of_deployment: Alerting) -> None:
    """Check that the alert about dead letters ends once, when the window has passed in silence."""
    sent: list[ProducerRecord] = []

    async def send(records: Sequence[ProducerRecord]) -> None:
        sent.extend(records)

    health = Health(assigned=frozenset({("verdicts", 0)}))
    (rule,) = (rule for rule in alerts_of_deployment.rules if rule.name == "dead_letters")
    # Without lag it is unknown, and a lag below zero stands for a clock that is ahead.
    for lags in ((), (PartitionLag("verdicts", 0, 0, 0, 9, 5.0),)):
        health.lags = lags
        await alerts_of_deployment.end_quiet(health, send)
        assert sent == []
    health.lags = (PartitionLag("verdicts", 0, 0, 0, 9, -3600.0 - rule.window_seconds),)
    for _ in range(2):
        await alerts_of_deployment.end_quiet(health, send)
    ended = {alert.subject: alert for alert in (decode_json(Alert, each.value or b"") for each in sent)}
    assert {(alert.name, alert.state) for alert in ended.values()} == {("dead_letters", "resolved")}
    assert (len(sent), ended.keys()) == (2, {"not_json", "empty_value"})
    until_seconds = (ended["not_json"].until or datetime.min.replace(tzinfo=UTC)).timestamp()
    assert abs(until_seconds - time.time()) < 1200
