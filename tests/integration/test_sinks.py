"""Events are written to tables with the files in deploy/sinks."""

import json
import re
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from nearstream.schemas.topics.table import ALERTS, EVENT_TOPICS, LABELS_CHANGED, NEAR_DUPLICATES, VERDICTS
from tests.devstack.server import running
from tests.devstack.sinks import Postgres, connect_to_tables, readers
from tests.support.deployment import LINES, LocalDeployment, deployed, until

pytestmark = pytest.mark.foreign

WITHIN_SECONDS = 300
ROOT = Path(__file__).parents[2]
SINKS, PAGE = ROOT / "deploy/sinks", (ROOT / "docs/events.md").read_text()


@pytest.fixture(scope="module")
async def matched(
    kafka: str, redis_url: str, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[LocalDeployment]:
    """Return a deployment that has sent the verdicts of the example documents."""
    async with deployed(kafka, redis_url, tmp_path_factory.mktemp("matched")) as deployment:
        await deployment.send(deployment.examples(LINES))
        with deployment.worker():
            await deployment.drained()
        yield deployment


async def test_postgresql_has_a_row_for_each_event(matched: LocalDeployment, tmp_path: Path, kafka: str) -> None:
    database = Postgres(tmp_path)
    connectors = {
        name: (SINKS / f"{name}.properties")
        .read_text()
        .replace("topics=", f"topics={matched.settings.topic_prefix}")
        .replace("jdbc:postgresql://127.0.0.1:5432/nearstream", database.url)
        for name in ("verdicts", "near_duplicates")
    }
    verdicts, pairs = await matched.read(VERDICTS.name), await matched.read(NEAR_DUPLICATES.name)
    sent = {json.loads(record.value)["event_id"]: json.loads(record.value) for record in (*verdicts, *pairs)}

    async def has_all() -> bool:
        assert connect.pid, (tmp_path / "connect/connect.log").read_text()[-4_000:]
        tables = {name for (name,) in database.ask("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")}
        if not tables >= set(connectors):
            return False
        return [database.ask(f"SELECT count(*) FROM {name}") for name in connectors] == [  # noqa: S608
            [[str(len({json.loads(each.value)["event_id"] for each in some}))]] for some in (verdicts, pairs)
        ]

    with running(database.server), running(connect_to_tables(tmp_path / "connect", kafka, connectors)) as connect:
        await until(has_all, WITHIN_SECONDS)
        rows = database.ask("SELECT event_id, verdict, of_id, resemblance_value FROM verdicts")
        for event_id, verdict, of, resemblance in rows:
            event = sent[event_id]
            assert verdict == event["verdict"]
            assert of == ((event["of"] or {}).get("id") or "")
            if resemblance:
                assert float(resemblance) == event["resemblance"]["value"]
        assert len({verdict for _, verdict, *_ in rows}) > 3


async def test_parquet_has_what_tail_prints(matched: LocalDeployment, tmp_path: Path) -> None:
    told = matched.run("tail", "--from-start", "--until-end", "--json", "--type", "verdict")
    assert told.returncode == 0, told.stderr
    (tmp_path / "verdicts.jsonl").write_bytes(told.stdout)
    (command,) = re.findall(r'^python -c "(import duckdb.*)"$', PAGE, re.MULTILINE)
    read(tmp_path, command)
    question = "import duckdb; print(duckdb.sql(\"SELECT count(*) FROM 'verdicts.parquet'\").fetchall()[0][0])"
    assert int(read(tmp_path, question)) == len(told.stdout.splitlines()) > len(LINES) // 2


async def test_clickhouse_takes_events_into_its_tables(matched: LocalDeployment, tmp_path: Path) -> None:
    """ClickHouse in one process has no engine for Kafka, so the rows are inserted as that engine reads them."""
    tables = (SINKS / "clickhouse.sql").read_text()
    (settings,) = set(re.findall(r"input_format.*(?=;)", tables))
    for topic in (*EVENT_TOPICS, ALERTS, LABELS_CHANGED):
        table = topic.name.removeprefix("nearstream.").removesuffix(".v1").replace("-", "_")
        rows = [record.value for record in await matched.read(topic.name)]
        (create,) = re.findall(rf"^CREATE TABLE {table} .*?(?=;)", tables, re.MULTILINE | re.DOTALL)
        (tmp_path / "rows").write_bytes(b"\n".join([*rows, b""]))
        insert = f"INSERT INTO {table} SETTINGS {settings} FORMAT JSONEachRow\n"
        counted = f"SELECT count() FROM {table} FINAL"  # noqa: S608 - a name of ours
        program = f"""
from pathlib import Path
from chdb.session import Session
session = Session()
session.query({create!r})
rows = Path("rows").read_text()
if rows:
    session.query({insert!r} + rows)
print(session.query({counted!r}, "CSV").bytes().decode())
"""
        assert int(read(tmp_path, program)) == len({json.loads(row)["event_id"] for row in rows}), topic.name


def read(folder: Path, program: str) -> str:
    """Run a program with the packages that read tables, and return what it prints."""
    command = [readers(), "-c", program]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout
