"""The security checklist on a running worker: its connections, stored data and logs."""

import json
import re
from ast import literal_eval
from dataclasses import dataclass
from random import Random
from urllib.parse import urlsplit

import pytest
from redis.asyncio import Redis

from nearstream.schemas.documents.record import ConsumerRecord, ProducerRecord
from nearstream.schemas.topics.codec import decode_signature
from nearstream.schemas.topics.table import DEAD_LETTERS, DOCUMENTS, EVENT_TOPICS, NEAR_DUPLICATES, SIGNATURES, VERDICTS
from tests.support.deployment import LocalDeployment, deployed
from tests.support.forged import FORGED, dangerous
from tests.support.matching import prose

KEY = "0123456789abcdef0123456789abcdef"
PHRASES = [f"quixotic{number}marmalade ferry{number}lantern" for number in range(100)]
LINE = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} [A-Z]+ \S+: .*|NETWORK .*")
URL = "https://fetch.example:8443/page"


@dataclass(frozen=True)
class Traces:
    """The traces that a worker left behind.

    Attributes:
        connected: Addresses to which it connected.
        log: The lines of its log.
        topics: Records of all topics but `documents`.
        index: Keys of the index with their dumped values.
        deployment: Its settings.
    """

    connected: set[tuple[str, int]]
    log: list[str]
    topics: list[ConsumerRecord]
    index: dict[bytes, bytes]
    deployment: LocalDeployment


def documents() -> list[tuple[bytes | None, bytes]]:
    """Return keys and values of documents that contain the phrases and URLs.

    Some are edited copies, and some are unreadable.
    """
    sent: list[tuple[bytes | None, bytes]] = []
    for number, phrase in enumerate(PHRASES):
        words = prose(number, 120).split()
        words[60:60] = phrase.split()
        text = " ".join(words)
        fields: dict[str, object] = {"id": f"d{number}", "text": text, "url": f"{URL}/{number}"}
        match number % 5:
            case 0:
                sent.append((None, json.dumps({**fields, "id": f"c{number}", "text": f"{text} more"}).encode()))
            case 1:
                fields["html"] = f'<img src="{URL}"><p>{text}</p>'
            case 2:
                fields["text"] = [text]
            case 3:
                fields["collection"] = phrase
        value = json.dumps(fields).encode()
        sent.append((phrase.encode(), value[:-9] if number % 10 == 4 else value))
    for forged in FORGED:
        name = forged.encode("utf-8", "surrogatepass")
        sent.append((name, json.dumps({"id": f"forged{forged}", "text": prose(7)}).encode()))
        sent.append((name, name))
    return sent


@pytest.fixture(scope="module")
async def traces(kafka: str, redis_url: str, tmp_path_factory: pytest.TempPathFactory) -> Traces:
    logs = tmp_path_factory.mktemp("traces")
    limits = {"dead_letter_max_ratio": "0"}
    async with deployed(kafka, redis_url, logs, profile="mail", hash_key=KEY, **limits) as deployment:
        topic = deployment.topic(DOCUMENTS)
        sent = documents()
        Random(0).shuffle(sent)
        with deployment.worker(program=("tests.integration.watched_worker",)):
            await deployment.send([ProducerRecord(topic, key, value, []) for key, value in sent])
            await deployment.drained()
        log = next(logs.glob("*.log")).read_text().splitlines()
        names = [SIGNATURES, *EVENT_TOPICS, DEAD_LETTERS]
        topics = await deployment.read(*(name.name for name in names))
        client = Redis.from_url(redis_url)
        keys = [key async for key in client.scan_iter(f"{{{deployment.settings.namespace}*", count=10_000)]
        index = {key: await client.dump(key) or b"" for key in keys}
        await client.aclose()
    connected = {literal_eval(line.removeprefix("NETWORK ")) for line in log if line.startswith("NETWORK (")}
    return Traces(connected, log, topics, index, deployment)


def test_s07_only_kafka_and_redis_are_ever_connected(traces: Traces) -> None:
    of_kafka = {tuple(address.rsplit(":", 1)) for address in traces.deployment.settings.kafka.split(",")}
    redis = urlsplit(traces.deployment.settings.redis)
    expected = {(host, int(port)) for host, port in of_kafka} | {(redis.hostname, redis.port)}
    assert {place[:2] for place in traces.connected} == expected


def test_s10_a_dump_holds_no_sketch_values(traces: Traces) -> None:
    signed = [record for record in traces.topics if record.topic.endswith(SIGNATURES.name) and record.value]
    values = [decode_signature(record.value or b"") for record in signed]
    assert len(values) > 50
    slots = {each.sketch[at : at + 4] for each in values for at in range(0, len(each.sketch), 4)}
    anchors = {each.anchors[at : at + 8] for each in values for at in range(0, len(each.anchors), 8)}
    buckets = b"\n".join(key + value for key, value in traces.index.items() if re.search(rb"}[bxalw]", key))
    assert len(buckets) > 10_000
    for secret in [*anchors, *(each.digest for each in values)]:
        assert secret not in buckets
        assert secret[::-1] not in buckets
    # Some sequences of 4 bytes are there by chance, as often random ones as ours.
    chance = [Random(1).randbytes(4) for _ in slots]
    assert sum(slot in buckets for slot in slots) <= 5 + 2 * sum(other in buckets for other in chance)


def test_s15_no_text_is_kept_or_told(traces: Traces) -> None:
    for topic, least in ((SIGNATURES, 50), (VERDICTS, 50), (NEAR_DUPLICATES, 5), (DEAD_LETTERS, 60)):
        assert sum(record.topic.endswith(topic.name) for record in traces.topics) >= least
    kept = [value for record in traces.topics for value in (record.key, record.value, *dict(record.headers).values())]
    kept += [*traces.index.keys(), *traces.index.values(), "\n".join(traces.log).encode()]
    words = [word for phrase in PHRASES for word in phrase.encode().split()]
    hits = [(word, value) for word in words for value in kept if word in (value or b"")]
    assert hits == []


def test_s16_every_line_of_the_log_is_the_workers_own(traces: Traces) -> None:
    assert len({line.partition("dead letter: ")[2].split()[0] for line in traces.log if "dead letter: " in line}) > 2
    for line in traces.log:
        assert LINE.fullmatch(line), line
        assert not dangerous(line)


def test_s17_the_key_is_not_in_the_log(traces: Traces) -> None:
    assert "NEARSTREAM_HASH_KEY=***" in "\n".join(traces.log)
    assert KEY not in "\n".join(traces.log)
