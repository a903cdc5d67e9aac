"""The commands of the pages run as they stand, in their order, in a new deployment."""

import gzip
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.devstack.server import free_ports
from tests.support.deployment import LINES, TEXTS, LocalDeployment, deployed
from tests.support.forking import write_program

pytestmark = pytest.mark.foreign

ROOT = Path(__file__).parents[2]
# Other pages have commands that need Docker, or promtool, which `test_prometheus.py` runs.
PAGES = ("api", "crawler", "double-blind", "live", "mail", "operations", "relations")
APART = ("operations",)  # pages whose blocks each begin with the deployment of the page
WITHIN_SECONDS = 360
HTTP = b"HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\n\r\n<!doctype html><title>Flood</title><p>"
START = """\
set -eu
curl() {
  case " $* " in
    *" -N "*) command curl --no-progress-meter --max-time 3 "$@" || test $? = 28 ;;
    *) command curl --no-progress-meter --fail-with-body --max-time 60 "$@" ;;
  esac
}
ready() { until command curl --silent --fail --output /dev/null "http://$NEARSTREAM_API/readyz"; do sleep 0.2; done; }
set -x
"""
SERVERS = "nearstream worker &\nnearstream serve &\nready\n"
# What the index knows before the commands of a page run. The other side of a double-blind check has a manuscript.
KNOWN = {
    "api": "nearstream worker &\nnearstream produce crawl.warc.gz mail.eml\n"
    "until nearstream show '<12@a.example>' && nearstream show https://a.example/flood; do sleep 0.5; done\n",
    "double-blind": "nearstream produce manuscripts/0.txt\n"
    "until nearstream check manuscripts/0.txt; do sleep 0.2; done\n",
    "mail": "nearstream produce mail.eml\nuntil nearstream show '<12@a.example>'; do sleep 0.5; done\n",
}


# The second file is known, and the index has two pages that are alike.
STORED = """\
nearstream topics create
nearstream worker &
nearstream produce documents.jsonl saved-pages.jsonl --quiet
until nearstream show https://a.example/2; do sleep 0.5; done
"""
NAME = r"NEARSTREAM_(TOPIC_PREFIX|GROUP|NAMESPACE)=(?:nearstream)?"
WORKING = """\
until grep -q "assigned: ${NEARSTREAM_TOPIC_PREFIX}nearstream" worker.log; do kill -0 $!; sleep 0.2; done
"""


def blocks_apart(page: str) -> str:
    """Return the commands of a page as a script in which each block has a shell of its own.

    Names that a block sets begin with those of the deployment, and files of the system are in the folder.
    """
    script = STORED
    for block in re.findall(r"^```\n((?:nearstream|export) .*?)^```", page, re.MULTILINE | re.DOTALL):
        script += "(\n"
        for line in block.splitlines():
            command = re.sub(
                r"NEARSTREAM_(TOPIC_PREFIX|GROUP|NAMESPACE)=(nearstream)?", r"NEARSTREAM_\1=${NEARSTREAM_\1}", line
            )
            is_worker = command.startswith("nearstream worker")
            script += f"{command} 2> worker.log &\n{WORKING}" if is_worker else f"{command}\n"
        script += "kill $(jobs -p) 2> /dev/null || true\nwait\n)\n"
    return script


def commands(page: str) -> str:
    """Return the commands of a page as a script. Those that would run for ever run beside the others."""
    text = (ROOT / f"docs/{page}.md").read_text()
    if page in APART:
        return blocks_apart(text)
    script, serves = "", False
    # Every fence is matched with its own end, or else the end of one would begin the next.
    for language, block in re.findall(r"^```(\w*)\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
        if language not in ("", "sh", "bash"):
            continue
        lines = [line.partition("  #")[0].rstrip() for line in block.splitlines() if not line.startswith("pip ")]
        if not lines or not re.match(r"(nearstream|curl|export) ", lines[0]):
            continue
        for line in lines:
            is_server = re.match(r"nearstream (worker|serve)", line) and not line.endswith("&")
            script += f"{line} &\n" if is_server else f"{line}\n"
        if "nearstream serve" in block:
            serves = True
            script += "ready\n"
    return ("" if serves else SERVERS) + KNOWN.get(page, "") + script


def given(folder: Path) -> None:
    """Make the files that the commands name."""
    for name in ("examples", "deploy"):
        (folder / name).symlink_to(ROOT / name)
    for name, text in (("A", TEXTS[0]), ("B", TEXTS[0][:-500]), ("text.txt", TEXTS[2])):
        (folder / name).write_text(text)
    (folder / "mail.eml").write_text(f"From: a@a.example\nSubject: news\nMessage-ID: <12@a.example>\n\n{TEXTS[3]}\n")
    for name in ("saved-pages", "manuscripts"):
        (folder / name).mkdir()
    for number in range(2):
        (folder / f"saved-pages/{number}.html").write_text(f"<!doctype html><p>{TEXTS[number]}")
        (folder / f"manuscripts/{number}.txt").write_text(TEXTS[number])
    (folder / "old.txt").write_text(TEXTS[5])
    (folder / "documents.jsonl").write_bytes(b"\n".join(LINES[:12]) + b"\n")
    pages = [{"url": f"https://a.example/{number}", "text": TEXTS[5] + " again" * number} for number in (1, 2)]
    (folder / "saved-pages.jsonl").write_text("".join(f"{json.dumps(page)}\n" for page in pages))
    fetches = [{"t": hours, "url": "https://a.example/1", "html": f"<p>{TEXTS[5]} {hours}"} for hours in (0, 6, 12)]
    (folder / "fetches.jsonl.gz").write_bytes(
        gzip.compress("".join(f"{json.dumps(each)}\n" for each in fetches).encode())
    )
    (folder / "shared.key").write_text("a key that both sides of a check have agreed on")
    (folder / "shared.key").chmod(0o400)
    content = HTTP + TEXTS[4].encode()
    head = (
        "WARC/1.0\r\nWARC-Type: response\r\nWARC-Target-URI: https://a.example/flood\r\n"
        "WARC-Date: 2026-03-02T08:15:00Z\r\nWARC-Record-ID: <urn:uuid:0c9a2f0e-7d5e-4c62-9a4e-0a4a3a3f4d11>\r\n"
        f"Content-Type: application/http; msgtype=response\r\nContent-Length: {len(content)}\r\n\r\n"
    )
    (folder / "crawl.warc.gz").write_bytes(gzip.compress(head.encode() + content + b"\r\n\r\n"))


def run(deployment: LocalDeployment, page: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run the commands of a page, and end every process that they have started."""
    (port,) = free_ports(1)
    address, programs = f"127.0.0.1:{port}", deployment.logs / "programs"
    programs.mkdir()
    environment = deployment.environment | {
        "NEARSTREAM_API": address,
        "PATH": f"{programs}:{Path(sys.executable).parent}:{os.environ['PATH']}",
    }
    if page == "double-blind":  # both sides have the key before they begin
        environment["NEARSTREAM_HASH_KEY_FILE"] = str(folder / "shared.key")
    script = START + commands(page).replace("127.0.0.1:9465", address)
    log = folder / "page.log"
    with log.open("w") as told:
        process = subprocess.Popen(
            ["bash", "-c", script],  # noqa: S607
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=told,
            stderr=told,
            pass_fds=[write_program(programs)],
            process_group=0,
        )
        try:
            code = process.wait(WITHIN_SECONDS)
        except subprocess.TimeoutExpired:
            code = -1
        finally:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    return subprocess.CompletedProcess(script, code, log.read_text())


@pytest.mark.parametrize("page", PAGES)
async def test_the_commands_of_a_page_run_as_they_stand(page: str, kafka: str, redis_url: str, tmp_path: Path) -> None:
    folder = tmp_path / "page"
    folder.mkdir()
    given(folder)
    async with deployed(kafka, redis_url, tmp_path) as deployment:
        done = run(deployment, page, folder)
    assert done.returncode == 0, f"{page}: {done.stdout[-3000:]}"
    assert "Traceback" not in done.stdout
