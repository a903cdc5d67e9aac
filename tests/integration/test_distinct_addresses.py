"""How many addresses sent and received a campaign: from the mails through Kafka into the answers, and after a loss."""

import asyncio
from email.message import EmailMessage
from pathlib import Path

from redis.asyncio import Redis

from nearstream.schemas.topics.table import DOCUMENTS, SIGNATURES
from tests.devstack.redis import redis_server
from tests.devstack.server import running
from tests.support.api import Api, served
from tests.support.deployment import TEXTS, deployed

SECRET = {"profile": "mail", "hash_key": "k" * 32}
MAILS = [("shop", "anna"), ("shop", "bernd"), ("shop", "carla"), ("store", "bernd"), ("shop", "dora, erik")]


def _mail(sender: str, recipients: str) -> bytes:
    message = EmailMessage()
    message["From"] = f"{sender}@a.example"
    message["To"] = ", ".join(f"{name}@b.example" for name in recipients.split(", "))
    message["Subject"], message["Message-ID"] = "News", f"<{sender}-{recipients.replace(', ', '-')}@a.example>"
    message.set_content(f"{TEXTS[0]}\n")
    return message.as_bytes()


async def _learn(api: Api, mail: bytes) -> None:
    """Learn a mail, again if the machine was too busy to confirm it in time."""
    async with asyncio.timeout(60):
        while True:
            _, answer = await api.send("POST", "/v1/check?learn=1", mail, **{"Content-Type": "message/rfc822"})
            if answer["learned"]:
                return


async def _counts(api: Api) -> tuple[object, ...]:
    _, answer = await api.ask(_mail("shop", "zoe"), Content_Type="message/rfc822")
    names = ("size", "count_1h", "distinct_senders_1h", "distinct_recipients_1h")
    return tuple(answer.get(name) for name in names)


async def test_a_campaign_tells_its_senders_and_recipients_also_after_a_rebuild(kafka: str, tmp_path: Path) -> None:
    with running(redis_server(tmp_path / "redis")) as redis:
        url = f"redis://{redis.address}/0"
        async with deployed(kafka, url, tmp_path, **SECRET) as local:
            own = {"kafka": kafka, "namespace": local.settings.namespace, "topic_prefix": local.settings.topic_prefix}
            async with served(url, **own, **SECRET) as api:
                with local.worker():
                    for mail in MAILS:
                        await _learn(api, _mail(*mail))
                        if mail is MAILS[0]:
                            await local.drained()  # it founds the family, so it joins nobody
                    await local.drained()
                assert await _counts(api) == (5, 4, 2, 4)
                async with Redis.from_url(url) as client:
                    await client.flushdb()
                assert local.run("rebuild", "--quiet").returncode == 0
                assert await _counts(api) == (5, 4, 2, 4)
            for topic in (DOCUMENTS, SIGNATURES):
                for record in await local.read(topic.name):
                    kept = (record.value or b"") + b"".join(value or b"" for _, value in record.headers)
                    assert b"b.example" not in kept  # the domain of the ids is another one
