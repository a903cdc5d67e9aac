"""A mail is accepted, put off or refused by what becomes of its record."""

import asyncio
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest

from nearstream.schemas.documents.record import ProducerRecord
from nearstream.workers.config.settings import SettingsError, load
from nearstream.workers.files.mail import MailReading
from nearstream.workers.kafka.errors import KafkaError, KafkaUnreachableError
from nearstream.workers.operations import receive_mail
from nearstream.workers.operations.receive_mail import ACCEPTED, LATER, REFUSED, Receiver
from nearstream.workers.pipeline.deployment import Deployment
from tests.support.mail import campaign_mail


class Kafka:
    """A Kafka that confirms records or fails."""

    def __init__(self) -> None:
        self.records: list[ProducerRecord] = []
        self.failure: Exception | None = None
        self.answers = asyncio.Event()
        self.answers.set()

    async def send(self, records: Iterable[ProducerRecord]) -> None:
        if self.failure:
            raise self.failure
        await self.answers.wait()
        self.records += records


@pytest.fixture
def reading() -> Iterator[tuple[MailReading, ThreadPoolExecutor]]:
    with closing(MailReading(None)) as mails, ThreadPoolExecutor(1) as readers:
        yield mails, readers


def _receiver(kafka: Kafka, reading: tuple[MailReading, ThreadPoolExecutor], **settings: str) -> Receiver:
    deployment = Deployment.of(load({f"NEARSTREAM_{name.upper()}": value for name, value in settings.items()}))
    return Receiver(deployment, "inbox", *reading, kafka.send, asyncio.get_running_loop().create_future())


async def test_a_mail_is_accepted_after_its_record_is_confirmed(
    reading: tuple[MailReading, ThreadPoolExecutor],
) -> None:
    kafka = Kafka()
    kafka.answers.clear()
    delivering = asyncio.create_task(_receiver(kafka, reading).deliver(campaign_mail("anna")))
    await asyncio.wait({delivering}, timeout=0.2)
    assert not delivering.done()
    kafka.answers.set()
    assert await delivering == ACCEPTED
    (record,) = kafka.records
    assert (record.topic, record.key) == ("nearstream.documents.v1", b"<anna@a.example>")
    assert ("nearstream-collection", b"inbox") in record.headers


async def test_a_silent_kafka_puts_mail_off(
    reading: tuple[MailReading, ThreadPoolExecutor],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(receive_mail, "CONFIRM_SECONDS", 0.05)
    kafka = Kafka()
    receiver = _receiver(kafka, reading)
    kafka.answers.clear()
    with caplog.at_level("INFO", receive_mail.__name__):
        assert [await receiver.deliver(campaign_mail("anna")) for _ in range(2)] == [LATER] * 2
        kafka.answers.set()
        monkeypatch.setattr(receive_mail, "CONFIRM_SECONDS", 30.0)
        assert await receiver.deliver(campaign_mail("anna")) == ACCEPTED
    assert [record.levelname for record in caplog.records] == ["WARNING", "INFO"]


@pytest.mark.parametrize(
    ("failure", "is_final"),
    [(KafkaUnreachableError("away"), False), (KafkaError("bug"), True), (SettingsError("no permission"), True)],
)
async def test_what_no_waiting_can_cure_ends_the_server(
    reading: tuple[MailReading, ThreadPoolExecutor], failure: Exception, is_final: bool
) -> None:
    kafka = Kafka()
    receiver, kafka.failure = _receiver(kafka, reading), failure
    assert await receiver.deliver(campaign_mail("anna")) == LATER
    assert receiver.ending.done() is is_final
    if is_final:
        assert receiver.ending.exception() is failure


async def test_a_mail_that_cannot_be_a_document_is_refused(reading: tuple[MailReading, ThreadPoolExecutor]) -> None:
    kafka = Kafka()
    receiver = _receiver(kafka, reading, max_text_bytes="100")
    assert await receiver.deliver(campaign_mail("anna")) == REFUSED
    assert await receiver.deliver(b"") == REFUSED
    assert kafka.records == []
