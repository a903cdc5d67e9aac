"""An index in a file: what it refuses, and what it keeps when the disk is full."""

import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from nearstream.schemas.documents.signature import Signature
from nearstream.streams.matching.matcher import Matcher
from nearstream.streams.store.limits import IndexLimits, IndexUnavailableError
from nearstream.workers.config.settings import SettingsError
from nearstream.workers.sqlite.file import open_store
from tests.support.made_up import KEY, STANDARD, words
from tests.support.matched import put, sign, verdict

DOCUMENTS = [sign(f"d{number}", words(number % 20, 200), number) for number in range(40)]


async def _verdicts(path: Path, documents: list[Signature]) -> list[tuple[str, str]]:
    with open_store(path, STANDARD.name) as index:
        matcher = Matcher(index.store, STANDARD, KEY)
        told = [verdict(await matcher.match(each)) for each in documents]
        return [(each.verdict, each.family.id) for each in told]


async def test_runs_one_after_another_say_what_one_run_says(tmp_path: Path) -> None:
    whole = await _verdicts(tmp_path / "whole.db", DOCUMENTS)
    parts = [
        each
        for start in range(0, 40, 10)
        for each in await _verdicts(tmp_path / "parts.db", DOCUMENTS[start : start + 10])
    ]
    assert parts == whole
    assert {kind for kind, _ in parts[20:]} == {"exact_duplicate"}
    assert await _verdicts(tmp_path / "parts.db", DOCUMENTS) == [("unchanged", family) for _, family in whole]
    with (
        open_store(tmp_path / "parts.db", STANDARD.name) as index,
        pytest.raises(SettingsError, match=r"parts\.db: expected an index of `scan` or `serve`: send the documents"),
    ):
        next(index.records())
    with open_store(tmp_path / "empty.db", STANDARD.name) as index:
        assert list(index.records()) == []


async def test_what_the_disk_has_no_room_for_is_not_there_and_the_rest_is(tmp_path: Path) -> None:
    with open_store(tmp_path / "index.db", STANDARD.name) as index:
        matcher = Matcher(index.store, STANDARD, KEY)
        await matcher.match(DOCUMENTS[0])
        index.commit()
        (pages,) = index.file.execute("PRAGMA page_count").fetchone()
        index.file.execute(f"PRAGMA max_page_count = {pages}")

        async def fill() -> None:
            await matcher.match_all([put(f"f{seed}", words(seed, 900)) for seed in range(30, 50)])
            index.commit()

        with pytest.raises(IndexUnavailableError, match="nothing was stored: database or disk is full"):
            await fill()
        index.file.execute("PRAGMA max_page_count = 1000000")
        assert verdict(await matcher.match(sign("copy", words(0, 200), 9))).verdict == "exact_duplicate"
        assert verdict(await matcher.match(sign("new", words(30, 900), 9))).verdict == "unique"


def test_another_file_scheme_or_process_is_refused_with_the_way_out(tmp_path: Path) -> None:
    path, other = tmp_path / "index.db", tmp_path / "other.db"
    open_store(path, STANDARD.name).close()
    with pytest.raises(SettingsError, match=r"expected the scheme mail-1, .* after an update make a new one"):
        open_store(path, "mail-1")
    (tmp_path / "text").write_text("No index at all. " * 99)
    with pytest.raises(SettingsError, match="expected an index, or a new file: file is not a database"):
        open_store(tmp_path / "text", STANDARD.name)
    schema = (tmp_path / "broken.db", b"CREATE TABLE states", b"CREATE TABLE \xc2tates")
    schema[0].write_bytes(path.read_bytes().replace(*schema[1:]))
    with pytest.raises(SettingsError, match=r"broken\.db: expected an index, or a new file"):
        open_store(schema[0], STANDARD.name)
    with sqlite3.connect(other) as file:
        file.execute("CREATE TABLE films(name)")
    with pytest.raises(SettingsError, match="expected an index, or a new file, not another database"):
        open_store(other, STANDARD.name)
    script = f"""import nearstream
nearstream.open_store({str(path)!r}, {STANDARD.name!r})
print(1, flush=True)
input()"""
    command = [sys.executable, "-c", script]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        with pytest.raises(SettingsError, match=f"another process has it open, with the id {process.pid}$"):
            open_store(path, STANDARD.name)
        process.kill()
    open_store(path, STANDARD.name).close()
    assert sorted(each.name for each in tmp_path.iterdir()) == ["broken.db", "index.db", "other.db", "text"]


async def test_a_damaged_value_is_named_with_its_file(tmp_path: Path) -> None:
    await _verdicts(tmp_path / "index.db", DOCUMENTS[:1])
    with closing(sqlite3.connect(tmp_path / "index.db", isolation_level=None)) as file:
        file.execute("UPDATE states SET value = x'c1'")
    with pytest.raises(IndexUnavailableError, match=r"index\.db: nothing was stored: a value in it is damaged"):
        await _verdicts(tmp_path / "index.db", DOCUMENTS[:1])


async def test_what_became_too_old_while_nobody_had_it_open_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now_ms, limits = 1_790_000_000_000, IndexLimits(retention_seconds=60)
    monkeypatch.setattr("nearstream.workers.sqlite.file._now_ms", lambda: now_ms)
    with open_store(tmp_path / "index.db", STANDARD.name, limits) as index:
        await Matcher(index.store, STANDARD, KEY).match_all(
            [put(f"d{seed}", words(seed // 2, 80)) for seed in range(600)]
        )
    now_ms += 100_000
    with open_store(tmp_path / "index.db", STANDARD.name, limits) as index:
        counts = [index.file.execute(f"SELECT count(*) FROM {name}").fetchone()[0] for name in _TABLES]  # noqa: S608
        assert counts == [0] * len(_TABLES)


_TABLES = ("states", "current", "keys", "buckets", "families", "members", "kept", "ages")
