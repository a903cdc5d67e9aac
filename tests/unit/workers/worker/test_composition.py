"""The start of a worker, which waits for servers and says so."""

from pathlib import Path

import pytest
from aiokafka.errors import KafkaError, NodeNotReadyError, RequestTimedOutError, UnsupportedVersionError

from nearstream.workers.config.settings import SettingsError, load
from nearstream.workers.kafka import topics as kafka_topics
from nearstream.workers.kafka.errors import KafkaUnreachableError
from nearstream.workers.pipeline.deployment import Deployment
from nearstream.workers.worker import composition
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

    monkeypatch.setattr(kafka_topics, "require", require)
    for name in ("require_deployment", "claim_deployment"):
        monkeypatch.setattr(composition, name, require)
    return to_come


async def test_a_broker_that_goes_away_while_a_worker_starts_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    to_come = broker(monkeypatch, NodeNotReadyError(), RequestTimedOutError())
    signing, matching, deciding, _ = await prepare(DEPLOYMENT, "sign", 10.0)
    assert signing is not None
    assert (matching, deciding) == (None, None)
    assert not to_come


@pytest.mark.parametrize(
    ("failures", "left", "told"),
    [
        ([NodeNotReadyError()] * 9, None, "cannot get ready: NodeNotReadyError"),
        ([UnsupportedVersionError(), NodeNotReadyError()], 1, "cannot get ready: .*UnsupportedVersionError"),
    ],
    ids=["it stays away", "no waiting cures it"],
)
async def test_what_a_start_cannot_wait_for_is_told(
    failures: list[KafkaError], left: int | None, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    to_come = broker(monkeypatch, *failures)
    with pytest.raises(KafkaUnreachableError, match=told):
        await prepare(DEPLOYMENT, "sign", 1.0)
    assert left is None or len(to_come) == left


async def test_settings_that_a_role_cannot_work_with_are_refused_before_any_server_is_asked(tmp_path: Path) -> None:
    rules = tmp_path / "alerts.toml"
    rules.write_text("[duplicate_storm]\nlimit = 0\nwindow_seconds = 600\n")
    for role, setting, value, told in (
        ("decide", "NEARSTREAM_VERDICTS", "related", "NEARSTREAM_VERDICTS=related: the role decide requires all"),
        ("alert", "NEARSTREAM_VERDICTS", "none", "NEARSTREAM_VERDICTS=none: the role alert requires all or related"),
        ("alert", "NEARSTREAM_ALERTS", str(rules), r"NEARSTREAM_ALERTS: .*: \[duplicate_storm\]: Expected `int` >= 2"),
    ):
        wrong = Deployment.of(load({setting: value, "NEARSTREAM_KAFKA": "127.0.0.1:1"}))
        with pytest.raises(SettingsError, match=told):
            await prepare(wrong, role, 1.0)
