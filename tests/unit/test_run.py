"""How a worker gets ready."""

import pytest
from aiokafka.errors import KafkaError, NodeNotReadyError, RequestTimedOutError, UnsupportedVersionError

from workers import kafka_rights, kafka_topics
from workers.kafka_tools import KafkaUnreachableError
from workers.run import prepared
from workers.settings import load


def broker(monkeypatch: pytest.MonkeyPatch, *failures: KafkaError) -> list[KafkaError]:
    """One that answers the questions of a start with these errors first; those still to come."""
    to_come = list(failures)

    async def require(*_: object) -> list[str]:
        if to_come:
            raise to_come.pop(0)
        return []

    monkeypatch.setattr(kafka_rights, "require", require)
    monkeypatch.setattr(kafka_topics, "require", require)
    return to_come


async def test_a_broker_that_goes_away_while_a_worker_starts_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    to_come = broker(monkeypatch, NodeNotReadyError(), RequestTimedOutError())
    signing, matching = await prepared(load({}), "sign", 10.0)
    assert signing is not None
    assert matching is None
    assert not to_come


async def test_a_broker_that_stays_away_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    broker(monkeypatch, *[NodeNotReadyError()] * 9)
    with pytest.raises(KafkaUnreachableError, match="cannot get ready: NodeNotReadyError"):
        await prepared(load({}), "sign", 1.0)


async def test_what_no_waiting_cures_is_told_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    to_come = broker(monkeypatch, UnsupportedVersionError(), NodeNotReadyError())
    with pytest.raises(KafkaUnreachableError, match=r"cannot get ready: .*UnsupportedVersionError"):
        await prepared(load({}), "sign", 10.0)
    assert len(to_come) == 1
