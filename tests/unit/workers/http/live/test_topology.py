"""The settings are shown without secrets, and each role with what it reads and writes."""

from nearstream.workers.config.settings import load
from nearstream.workers.http.operator import deployment_of
from nearstream.workers.kafka.lag import PartitionLag
from nearstream.workers.pipeline.deployment import Deployment

SECRET = "a-secret-of-thirty-two-characters-or-more"  # noqa: S105 - of the test


def test_each_role_has_its_group_its_topics_and_its_lag() -> None:
    deployment = Deployment.of(load({"NEARSTREAM_TOPIC_PREFIX": "x.", "NEARSTREAM_GROUP": "g"}))
    rows = [PartitionLag("x.nearstream.documents.v1", number, 5 - 6 * number, 0, 9, 4.5) for number in range(2)]
    unread = PartitionLag("x.nearstream.verdicts.v1", 0, -1, 0, 9, 4.5)
    shown = deployment_of(deployment, {"g": [*rows, unread], "g.alert": [unread]})
    roles = {role.role: role for role in shown.roles}
    assert list(roles) == ["sign", "match", "decide", "alert"]
    assert {name: role.group for name, role in roles.items()} == dict.fromkeys(roles, "g") | {"alert": "g.alert"}
    (documents,) = roles["sign"].reads
    assert (documents.topic, documents.records, documents.seconds) == ("x.nearstream.documents.v1", 13, 4.5)
    assert [each.records for each in roles["alert"].reads] == [None, None, None]  # verdicts, dead letters, silences
    assert "x.nearstream.alerts.v1" in roles["alert"].writes


def test_secrets_are_masked() -> None:
    deployment = Deployment.of(load({"NEARSTREAM_HASH_KEY": SECRET, "NEARSTREAM_REDIS": f"redis://:{SECRET}@a:1/0"}))
    shown = deployment_of(deployment, {})
    assert SECRET not in str(shown)
    assert {each.variable for each in shown.settings} >= {"NEARSTREAM_HASH_KEY", "NEARSTREAM_REDIS"}
