"""Commands that need no server, and how they get along with a shell."""

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from nearstream.schemas.verdicts.events import RELATIONS
from tests.support.deployment import TEXTS
from tests.support.forking import finished

ROOT = Path(__file__).parents[4]
TEN_WORDS = "one two three four five six seven eight nine ten"


def _run(*arguments: str, given: bytes = b"", **variables: str) -> subprocess.CompletedProcess[bytes]:
    inherited = {key: value for key, value in os.environ.items() if not key.startswith("NEARSTREAM_")}
    return finished([sys.executable, "-m", "nearstream", *arguments], {**inherited, **variables}, given)


def _shell(command: str) -> subprocess.CompletedProcess[bytes]:
    inherited = {key: value for key, value in os.environ.items() if not key.startswith("NEARSTREAM_")}
    shell = ["/bin/bash", "-o", "pipefail", "-c", command]
    return subprocess.run(shell, env=inherited, capture_output=True, timeout=60, cwd=ROOT, check=False)


def test_the_demo_prints_events_of_pairs_then_the_families() -> None:
    done = _run("demo", "--events", "--json")
    kinds = {json.loads(line)["type"] for line in done.stdout.splitlines()}
    assert (done.returncode, kinds) == (0, {*RELATIONS})
    assert re.search(r"^32 families with 35 copies, the largest:\n +3  \S+\n", done.stderr.decode(), re.MULTILINE)


def test_scan_tells_what_is_related_then_the_families_and_the_counts() -> None:
    other, days = "nothing that anybody else has said before", {"b": 2, "a": 1}
    rows = [("b", TEN_WORDS), ("x", other), ("a", TEN_WORDS), ("c", TEN_WORDS), ("c", TEN_WORDS)]
    given = "\n".join(
        json.dumps({"id": name, "text": text, "observed_at": f"2026-01-0{days.get(name, 3)}T00:00:00Z"})
        for name, text in rows
    ).encode()
    done = _run("scan", "-", given=given)
    assert done.stdout.decode().splitlines() == [
        "exact_duplicate  a equals b  [now 2 alike]",
        "exact_duplicate  c equals a  [now 3 alike, founded by b]",
    ]
    assert done.stderr.decode().splitlines()[1:] == [
        "1 family with 2 copies, the largest:",
        "        3  b",
        "found 2 unique, 2 exact_duplicate, 1 unchanged",
    ]

    done = _run("scan", "-", "--members", given=given)
    assert done.stderr.decode().splitlines()[2:5] == ["        3  b", "             a", "             c"]

    def told(*options: str) -> list[dict[str, Any]]:
        done = _run("scan", "-", "--json", "--quiet", *options, given=given)
        assert (done.returncode, done.stderr) == (0, b"")
        return [json.loads(line) for line in done.stdout.splitlines()]

    assert [(each["id"], each["of"]["id"], each["family"]["ordinal"]) for each in told()] == [
        ("a", "b", 2),
        ("c", "a", 3),
    ]
    kinds = [(each["id"], each["verdict"]) for each in told("--all")]
    assert kinds[:3] == [("b", "unique"), ("x", "unique"), ("a", "exact_duplicate")]
    assert kinds[3:] == [("c", "exact_duplicate"), ("c", "unchanged")]
    first, *_ = told("--events")
    assert (first["type"], first["newer"]["id"], first["older"]["id"]) == ("exact_duplicate", "b", "a")


def test_scan_names_files_beside_ids_and_what_was_lost_in_reading(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / f"{name}.jsonl").write_text(json.dumps({"id": name, "text": TEN_WORDS}))
    page = "<title>t</title><nav><a href=x>w</a></nav><main>short words</main><p>one two three four five six"
    (tmp_path / "c.html").write_text(page)
    done = _run("scan", str(tmp_path))
    places = f"in {tmp_path}/b.jsonl:1, before in {tmp_path}/a.jsonl:1"
    assert done.stdout.decode() == f"exact_duplicate  b equals a  [now 2 alike]  {places}\n"
    assert "read with losses: 1 main_content_small (all text of a page was taken" in done.stderr.decode()
    (first,) = _run("scan", str(tmp_path), "--json", "--quiet").stdout.splitlines()
    told = json.loads(first)
    assert (told["source"], told["of_source"]) == (f"{tmp_path}/b.jsonl:1", f"{tmp_path}/a.jsonl:1")


def test_scan_compares_with_references_that_are_compared_with_none(tmp_path: Path) -> None:
    (tmp_path / "licence.txt").write_text(TEXTS[0])
    (tmp_path / "new.txt").write_text(f"{TEXTS[1]}\n{TEXTS[0]}")
    paths = [str(tmp_path / name) for name in ("licence.txt", "new.txt")]
    done = _run("scan", "--reference", paths[0], paths[1], "--quiet")
    first, second = done.stdout.decode().splitlines()
    assert first.startswith("unique ")
    assert second.startswith("                 containment of reference/")
    assert "licence.txt  [resemblance 0." in second
    assert _run("scan", "--reference", "no-such-file.txt", paths[1], "--quiet").returncode == 65


def test_wrong_use_gets_a_clear_answer() -> None:
    for arguments, code, told in (
        (["scan", "no-such-file.jsonl"], 65, "refused no-such-file.jsonl: No such file or directory"),
        ([], 2, "nearstream scan FOLDER"),
        (["dlq"], 2, "required"),
        (["scan", "-", "--all", "--events"], 2, "not allowed with argument --all"),
        (["worker", "sing"], 2, "invalid choice: 'sing': did you mean sign? choose from sign, match,"),
        (["prodcue"], 2, "invalid choice: 'prodcue': did you mean produce?"),
        (["check", "--against", "", "-"], 2, "--against: up to 63 lower-case letters"),
        (["check", "--against", "good, bad", "-"], 2, "--against: up to 63 lower-case letters"),
        (["check", "--against", "a,b,c,d,e", "-"], 2, "--against: at most 4 collections expected"),
        (["dlq", "lst"], 2, "invalid choice: 'lst': did you mean list?"),
        (["fly"], 2, "invalid choice: 'fly': `--help` lists all commands"),
        (["show", ""], 2, "1 to 512 characters"),
        (["scan", "a.jsonl", "--keep", ""], 2, "--keep: the name of a file expected"),
        (["scan", "a.jsonl", "--keep", "-"], 2, "--keep: the name of a file expected: -"),
        (["stats", "--index", "seen.db"], 2, "ask the API or the live page of `nearstream serve --index FILE`"),
        (["show", "a", "--collection", "A"], 2, "lower-case"),
        (["dlq", "list", "--reason", "typo"], 2, "not_json"),
    ):
        done = _run(*arguments)
        assert done.returncode == code
        assert told in done.stderr.decode()
        assert "Traceback" not in done.stderr.decode()


def test_a_closed_standard_input_is_named_and_not_counted_as_scanned() -> None:
    done = _shell(f"{sys.executable} -m nearstream scan - <&-")
    assert (done.returncode, done.stdout) == (65, b"")
    assert done.stderr.startswith(b"refused standard input: it is closed, redirect it from a file or a pipe\n")
    assert done.stderr.splitlines()[1].startswith(b"scanned: 0, ")
    assert done.stderr.splitlines()[2:] == [b"found no document", b"left out 1 refused"]


SECRET = "correct-horse-battery-staple-of-32-bytes"  # noqa: S105 - a made-up one
AWAY = {"NEARSTREAM_KAFKA": "127.0.0.1:1", "NEARSTREAM_REDIS": "redis://127.0.0.1:1/0", "NEARSTREAM_STATUS": "off"}
SASL = {"NEARSTREAM_KAFKA_USERNAME": "us", "NEARSTREAM_KAFKA_PASSWORD": SECRET, "NEARSTREAM_HASH_KEY": SECRET}


def test_s17_no_command_prints_a_secret_even_if_it_is_wrong() -> None:
    for variables in (
        {**SASL, "NEARSTREAM_KAFKA_SECURITY": "SASL_SSL", "NEARSTREAM_REDIS": f"redis://us:{SECRET}@no.invalid:1/0"},
        {"NEARSTREAM_REDIS": f"redis://us:{SECRET}%zz@127.0.0.1:1/9999"},
        {"NEARSTREAM_REDIS": f"rediss://127.0.0.1:1/0?password={SECRET}", "NEARSTREAM_STATUS_TOKEN": SECRET},
        {"NEARSTREAM_HASH_KEY_FILE": SECRET},
    ):
        for command in ("settings --json", "doctor --timeout 0.2", "worker --timeout 0.2"):
            done = _run(*command.split(), **{**AWAY, **variables, "NEARSTREAM_LOG_LEVEL": "debug"})
            told = (done.stdout + done.stderr).decode()
            assert done.returncode in (0, 1, 69, 78)
            assert SECRET not in told
            assert "Traceback" not in told


SCAN = f'seq -f \'{{"text": "words of %g"}}\' 1500 | {sys.executable} -m nearstream scan - --all --quiet'


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
def test_an_output_that_is_closed_is_no_error_and_a_full_disk_is_one_of_its_own(tmp_path: Path) -> None:
    settings = f"{sys.executable} -m nearstream settings"
    for command in (f"{SCAN} | head -n 1", f"{settings} | true", f"{settings} >&-"):
        done = _shell(command)
        assert (done.returncode, done.stderr) == (0, b"")
    for command in (f"{SCAN} > /dev/full", f"{settings} > /dev/full"):
        done = _shell(command)
        assert (done.returncode, done.stderr) == (74, b"nearstream: No space left on device\n")
    done = _shell(f"ulimit -f 200; {SCAN} --index {tmp_path}/index.db")
    assert (done.returncode, b"index.db: nothing was stored" in done.stderr) == (74, True)


def test_an_interrupt_while_it_loads_leaves_no_traceback() -> None:
    slow = """
import sys, time
class Slow:
    def find_spec(self, name, *_):
        if name == "nearstream.workers.cli.main":
            print("loading", flush=True)
            time.sleep(30)
sys.meta_path.insert(0, Slow())
from nearstream.workers.__main__ import main
main()
"""
    with subprocess.Popen(
        [sys.executable, "-c", slow], stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=ROOT
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"loading\n"
        process.send_signal(signal.SIGINT)
        _, told = process.communicate(timeout=60)
        assert (process.returncode, told) == (130, b"")


def test_an_interrupt_is_heard_while_waiting_for_input_and_sums_up() -> None:
    command, pipe = [sys.executable, "-m", "nearstream", "scan", "-"], subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, cwd=ROOT) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for name in "ab":
            process.stdin.write(json.dumps({"id": name, "text": TEN_WORDS}).encode() + b"\n")
        process.stdin.flush()
        assert process.stdout.readline()  # it reads by now
        process.send_signal(signal.SIGINT)
        told = process.communicate(timeout=60)[1]
        assert (process.returncode, told.splitlines()[-1]) == (130, b"found 1 unique, 1 exact_duplicate")
        assert b"Traceback" not in told
