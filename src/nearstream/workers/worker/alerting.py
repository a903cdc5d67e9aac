"""Make what the worker `alert` decides with."""

import time
from functools import partial

from nearstream.schemas.alerts.alert import Alert
from nearstream.schemas.topics.table import ALERTS
from nearstream.streams.alerting.silences import Silences
from nearstream.workers.config.alert_rules import AlertSettings
from nearstream.workers.http.webhooks import Webhooks
from nearstream.workers.kafka.silences import follow_in_thread, read_silences
from nearstream.workers.pipeline.alert import Alerting, LabelWatch
from nearstream.workers.pipeline.dead_letters import DeadLetterWriter
from nearstream.workers.pipeline.deployment import Deployment
from nearstream.workers.redis.kept.label_guards import LabelGuards
from nearstream.workers.redis.kept.tallies import TallyStore
from nearstream.workers.redis.reading.labelled import LabelledFamilies
from nearstream.workers.redis.server.client import connect


async def alerting(
    deployment: Deployment, alerts: AlertSettings, dead_letters: DeadLetterWriter, wait_seconds: float
) -> Alerting:
    """Return the alerting of a worker, with the silences of the topic.

    Raises:
        KafkaUnreachableError: No broker answered within `wait_seconds`.
    """
    settings, silences = deployment.settings, Silences()
    await read_silences(settings, silences.say, wait_seconds, until_end=True)
    follow_in_thread(settings, silences.say, wait_seconds)
    tallies = TallyStore(connect(deployment.index_address().connection), settings.namespace)
    guards = LabelGuards(tallies.client, settings.namespace)
    webhooks = Webhooks(alerts.targets, public_url=alerts.public_url, holds_back=partial(_holds_back, silences))
    return Alerting(
        alerts.rules,
        tallies,
        deployment.topic(ALERTS),
        deployment.scheme.name,
        dead_letters,
        LabelWatch(LabelledFamilies(deployment.index_address()).growth, guards.suspend),
        silences,
        webhooks.offer,
    )


def _holds_back(silences: Silences, alert: Alert) -> bool:
    return silences.holds_back(alert, time.time_ns() // 1_000_000)
