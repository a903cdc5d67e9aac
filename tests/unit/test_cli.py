"""Commands that need no server, run as a user runs them."""

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from workers.cli import main
from workers.demo import EXAMPLES
from workers.settings import load, table

ROOT = Path(__file__).parent.parent.parent
README = (ROOT / "README.md").read_text()


def _run(*arguments: str, given: bytes = b"", **variables: str) -> subprocess.CompletedProcess[bytes]:
    inherited = {key: value for key, value in os.environ.items() if not key.startswith("NEARSTREAM_")}
    return subprocess.run(
        [sys.executable, "-m", "workers", *arguments],
        env={**inherited, **variables},
        input=given,
        capture_output=True,
        timeout=60,
        check=False,
        cwd=ROOT,
    )


def _shell(command: str) -> subprocess.CompletedProcess[bytes]:
    inherited = {key: value for key, value in os.environ.items() if not key.startswith("NEARSTREAM_")}
    shell = ["/bin/bash", "-o", "pipefail", "-c", command]
    return subprocess.run(shell, env=inherited, capture_output=True, timeout=60, cwd=ROOT, check=False)


def test_the_demo_tells_every_relation_then_agrees_with_history() -> None:
    done = _run("demo")
    told = done.stdout.decode()
    assert done.returncode == 0
    for relation in ("exact_duplicate", "near_duplicate", "containment", "version", "rearranged", "overlap", "removed"):
        assert re.search(f"^{relation} ", told, re.MULTILINE)
    assert re.search(r"unrelated +49 +49 +0 +0", told)


def test_the_readme_shows_lines_of_the_demo() -> None:
    shown = re.findall(r"^((?:near_duplicate|containment|version) .*)\.\.\.\]$", README, re.MULTILINE)
    told = _run("demo").stdout.decode()
    assert len(shown) == 3
    assert [line for line in shown if line not in told] == []


def test_scan_reads_standard_input_and_writes_json_lines() -> None:
    text = json.loads((EXAMPLES / "documents.jsonl").read_bytes().splitlines()[0])["text"]
    lines = [
        json.dumps({"id": name, "text": text, "observed_at": f"2026-01-0{day}T00:00:00Z"})
        for name, day in (("b", 2), ("a", 1))
    ]
    done = _run("scan", "-", "--json", "--quiet", given="\n".join(lines).encode())
    (event,) = [json.loads(line) for line in done.stdout.splitlines()]
    assert done.returncode == 0
    assert (event["type"], event["newer"]["id"], event["older"]["id"]) == ("exact_duplicate", "b", "a")
    assert done.stderr == b""


def test_scan_reads_texts_and_folders(tmp_path: Path) -> None:
    text = "one two three four five six seven eight nine ten eleven twelve thirteen"
    (tmp_path / "a.txt").write_text(text)
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "b.txt").write_text(text.upper())
    done = _run("scan", str(tmp_path), "--quiet")
    assert done.returncode == 0
    assert b"exact_duplicate" in done.stdout


def test_an_unreadable_line_is_told_with_its_place_and_the_rest_goes_on() -> None:
    text = "one two three four five six seven eight nine ten"
    good = [json.dumps({"id": name, "text": text}).encode() for name in "ab"]
    done = _run("scan", "-", "--quiet", given=b"\n".join([good[0], b"{", good[1]]))
    assert done.returncode == 65
    assert b"refused standard input:2: not_json" in done.stderr
    assert b"exact_duplicate" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "code", "told"),
    [
        (["scan", "no-such-file.jsonl"], 65, "nearstream: no-such-file.jsonl: No such file or directory"),
        (["demo", "no-such-folder"], 65, "no-such-folder"),
        ([], 2, "required"),
        (["worker", "sing"], 2, "invalid choice"),
        (["fly"], 2, "invalid choice"),
        (["inspect", ""], 2, "1 to 512 characters"),
        (["inspect", "a", "--collection", "A"], 2, "lower-case"),
        (["dlq", "list", "--reason", "typo"], 2, "not_json"),
        (["stats", "--timeout", "0"], 2, "a number above 0 expected"),
    ],
)
def test_wrong_use_gets_a_clear_answer(arguments: list[str], code: int, told: str) -> None:
    done = _run(*arguments)
    assert done.returncode == code
    assert told in done.stderr.decode()
    assert "Traceback" not in done.stderr.decode()


def test_wrong_settings_stop_every_command() -> None:
    done = _run("demo", NEARSTREAM_ROWS="x")
    assert done.returncode == 78
    assert done.stderr.decode() == "nearstream: NEARSTREAM_ROWS: a whole number expected, got 'x'\n"


def test_settings_are_listed_without_secrets() -> None:
    done = _run("settings", "--json", NEARSTREAM_REDIS="redis://u:hunter2@h:1/0", NEARSTREAM_HASH_KEY="k" * 40)
    rows = {row["variable"]: row for row in map(json.loads, done.stdout.splitlines())}
    assert len(rows) == len(table(load({})))
    assert rows["NEARSTREAM_REDIS"]["value"] == "redis://***@h:1/0"
    assert b"hunter2" not in done.stdout + done.stderr
    assert b"kkkk" not in done.stdout


def test_a_reader_that_has_seen_enough_is_no_error() -> None:
    done = _shell(f"{sys.executable} -m workers scan examples/documents.jsonl --quiet | head -n 1")
    assert done.returncode == 0
    assert done.stderr == b""


def test_a_reader_that_is_gone_before_the_end_is_no_error() -> None:
    done = _shell(f"{sys.executable} -m workers settings | true")
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
def test_a_full_disk_is_no_unreadable_input() -> None:
    for command in ("settings", "scan examples/documents.jsonl --quiet"):
        done = _shell(f"{sys.executable} -m workers {command} > /dev/full")
        assert done.returncode == 74
        assert done.stderr == b"nearstream: No space left on device\n"


def test_a_closed_output_is_nobodys_trouble() -> None:
    done = _shell(f"{sys.executable} -m workers demo >&-")
    assert (done.returncode, done.stderr) == (0, b"")


def test_an_interrupt_while_it_loads_leaves_no_traceback() -> None:
    slow = """
import sys, time
class Slow:
    def find_spec(self, name, *_):
        if name == "workers.cli":
            print("loading", flush=True)
            time.sleep(30)
sys.meta_path.insert(0, Slow())
from workers.__main__ import main
main()
"""
    with subprocess.Popen(
        [sys.executable, "-c", slow], stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=ROOT
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"loading\n"
        process.send_signal(signal.SIGINT)
        _, told = process.communicate(timeout=10)
        assert (process.returncode, told) == (130, b"")


def test_an_interrupt_is_heard_while_waiting_for_input() -> None:
    command = [sys.executable, "-m", "workers", "scan", "-", "--quiet"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        text = "one two three four five six seven eight nine ten"
        for name in "ab":
            process.stdin.write(json.dumps({"id": name, "text": text}).encode() + b"\n")
        process.stdin.flush()
        assert process.stdout.readline()  # it reads by now
        process.send_signal(signal.SIGINT)
        assert process.wait(10) == 130


def test_a_pipe_holds_json_lines(tmp_path: Path) -> None:
    text = "one two three four five six seven eight nine ten"
    lines = "\n".join(json.dumps({"id": name, "text": text}) for name in "ab")
    (tmp_path / "lines").write_text(lines)
    command = f"{sys.executable} -m workers scan <(cat {tmp_path}/lines) --quiet"
    done = subprocess.run(["/bin/bash", "-c", command], capture_output=True, timeout=30, cwd=ROOT, check=False)
    assert done.returncode == 0
    assert b"exact_duplicate" in done.stdout


def test_every_command_has_help(capsys: pytest.CaptureFixture[str]) -> None:
    for command in (
        "demo",
        "scan",
        "compare",
        "worker",
        "topics",
        "produce",
        "tail",
        "lag",
        "dlq",
        "doctor",
        "settings",
        "inspect",
        "stats",
        "rebuild",
        "index",
    ):
        with pytest.raises(SystemExit) as ended:
            main([command, "--help"])
        assert ended.value.code == 0
        assert command in capsys.readouterr().out
