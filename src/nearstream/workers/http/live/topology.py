"""Show the settings of a server, and what the workers of each role read and write."""

from collections.abc import Iterator, Mapping
from importlib.metadata import version

from nearstream.schemas.live.state import LiveDeployment, LiveInput, LiveRole, LiveSetting
from nearstream.workers.config.groups import own_group
from nearstream.workers.config.settings import Settings, table
from nearstream.workers.kafka import acls
from nearstream.workers.kafka.lag import PartitionLag
from nearstream.workers.pipeline.deployment import Deployment

_ROLES = ("sign", "match", "decide", "alert")

Lags = Mapping[str, list[PartitionLag]]  # by consumer group


def deployment_of(deployment: Deployment, lags: Lags) -> LiveDeployment:
    """Return the settings of a deployment with secrets masked, and its roles with their lag.

    Args:
        deployment: The deployment of the server.
        lags: The lag of each group, as far as it is known.
    """
    settings = deployment.settings
    return LiveDeployment(
        version=version("nearstream"),
        scheme=deployment.scheme.name,
        roles=tuple(_role(own_group(settings, role), role, lags) for role in _ROLES),
        settings=tuple(
            LiveSetting(variable=variable, value=value, default=default, help=meaning)
            for variable, value, default, meaning in table(settings)
        ),
    )


def _role(settings: Settings, role: str, lags: Lags) -> LiveRole:
    known = lags.get(settings.group, [])
    return LiveRole(
        role=role,
        group=settings.group,
        reads=tuple(_input(topic, known) for topic in _topics(settings, role, "READ")),
        writes=tuple(_topics(settings, role, "WRITE")),
    )


def _topics(settings: Settings, role: str, operation: str) -> Iterator[str]:
    for permission in acls.needed(settings, role):
        if (permission.kind, permission.operation) == ("topic", operation):
            yield permission.name


def _input(topic: str, lags: list[PartitionLag]) -> LiveInput:
    rows = [row for row in lags if row.topic == topic]
    if all(row.committed < 0 for row in rows):
        return LiveInput(topic=topic, records=None, seconds=None)
    seconds = max((row.seconds for row in rows if row.seconds is not None), default=None)
    return LiveInput(topic=topic, records=sum(row.records for row in rows), seconds=seconds)
