"""The start of a worker."""

from pathlib import Path

import pytest
from aiokafka.errors import KafkaError, NodeNotReadyError, RequestTimedOutError, UnsupportedVersionError

from nearstream.workers.config.settings import SettingsError, load, own_group
from nearstream.workers.kafka import acls
from nearstream.workers.kafka import topics as kafka_topics
from nearstream.workers.kafka.errors import KafkaUnreachableError
from nearstream.workers.pipeline.deployment import Deployment
from nearstream.workers.worker import composition as worker
from nearstream.workers.worker.composition import prepare

DEPLOYMENT = Deployment.of(load({}))


def broker(monkeypatch: pytest.MonkeyPatch, *failures: KafkaError) -> list[KafkaError]:
    """Let the checks at a start fail with these errors first.

    Returns the errors that are still to come.
    """
    to_come = list(failures)

    async def require(*_: object, **__: object) -> list[str]:
        if to_come:
            raise to_come.pop(0)
        return []

    monkeypatch.setattr(acls, "require", require)
    monkeypatch.setattr(kafka_topics, "require", require)
    for name in ("require_deployment", "claim_deployment"):
        monkeypatch.setattr(worker, name, require)
    return to_come


async def test_a_broker_that_goes_away_while_a_worker_starts_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    to_come = broker(monkeypatch, NodeNotReadyError(), RequestTimedOutError())
    agents = await prepare(DEPLOYMENT, "sign", 10.0)
    assert agents.signing is not None
    assert (agents.matching, agents.deciding) == (None, None)
    assert not to_come


async def test_a_broker_that_stays_away_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    broker(monkeypatch, *[NodeNotReadyError()] * 9)
    with pytest.raises(KafkaUnreachableError, match="cannot get ready: NodeNotReadyError"):
        await prepare(DEPLOYMENT, "sign", 1.0)


async def test_what_no_waiting_cures_is_told_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    to_come = broker(monkeypatch, UnsupportedVersionError(), NodeNotReadyError())
    with pytest.raises(KafkaUnreachableError, match=r"cannot get ready: .*UnsupportedVersionError"):
        await prepare(DEPLOYMENT, "sign", 10.0)
    assert len(to_come) == 1


async def test_decisions_need_all_verdicts() -> None:
    related = Deployment.of(load({"NEARSTREAM_VERDICTS": "related"}))
    with pytest.raises(SettingsError, match="NEARSTREAM_VERDICTS=related: the role decide requires all"):
        await prepare(related, "decide", 1.0)


async def test_alerts_need_verdicts() -> None:
    none = Deployment.of(load({"NEARSTREAM_VERDICTS": "none"}))
    with pytest.raises(SettingsError, match="NEARSTREAM_VERDICTS=none: the role alert requires all or related"):
        await prepare(none, "alert", 1.0)


async def test_wrong_rules_are_refused_before_any_server_is_asked(tmp_path: Path) -> None:
    (tmp_path / "alerts.toml").write_text("[duplicate_storm]\nlimit = 0\nwindow_seconds = 600\n")
    wrong = Deployment.of(load({"NEARSTREAM_ALERTS": str(tmp_path / "alerts.toml"), "NEARSTREAM_KAFKA": "127.0.0.1:1"}))
    with pytest.raises(SettingsError, match=r"NEARSTREAM_ALERTS: .*: \[duplicate_storm\]: Expected `int` >= 2"):
        await prepare(wrong, "alert", 1.0)


def test_only_the_role_alert_has_a_group_of_its_own() -> None:
    groups = {role: own_group(DEPLOYMENT.settings, role).group for role in ("sign", "match", "decide", "all", "alert")}
    assert groups.pop("alert") == "nearstream.alert"
    assert set(groups.values()) == {"nearstream"}
