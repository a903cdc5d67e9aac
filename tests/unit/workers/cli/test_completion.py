"""What each shell completes with our script, asked from the shell itself."""

import os
import pty
import re
import select
import subprocess
import sys
import time
from pathlib import Path

import pytest

from nearstream.workers.cli.setup import SHELLS
from tests.devstack.debian import unpacked
from tests.support.forking import finished

pytestmark = pytest.mark.foreign

ASK_BASH = """
eval "$(cat script.bash)"
function=$(complete -p nearstream | sed 's/.* -F \\([^ ]*\\) .*/\\1/')
for line in "$@"; do
    COMP_WORDS=(nearstream $line) COMPREPLY=()
    COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
    $function
    echo "${COMPREPLY[*]}"
done
"""
CASES = {
    "wor": "worker",
    "worker --time": "--timeout",
    "topics cr": "create",
    "dlq replay --reason not_j": "not_json",
    "completion z": "zsh",
    "label rev": "revoke",
    "tail --type verd": "verdict",
    "scan article": "article-1.txt",
    "compare article-1.txt oth": "other.txt",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the script of each shell, and with files to complete."""
    made = tmp_path_factory.mktemp("completion")
    for name in ("article-1.txt", "other.txt"):
        (made / name).touch()
    (made / "folder").mkdir()
    for shell in SHELLS:
        done = finished([sys.executable, "-m", "nearstream", "completion", shell], os.environ)
        assert (done.returncode, done.stderr) == (0, b"")
        (made / f"script.{shell}").write_bytes(done.stdout)
    return made


@pytest.mark.parametrize("shell", SHELLS)
def test_a_shell_completes(shell: str, folder: Path) -> None:
    completed = {"bash": bash, "zsh": zsh, "fish": fish}[shell](folder, list(CASES))
    assert dict(zip(CASES, (each.removesuffix("/") for each in completed), strict=True)) == CASES


def bash(folder: Path, lines: list[str]) -> list[str]:
    """Return what bash offers for the last word of each line."""
    command = ["bash", "-c", ASK_BASH, "bash", *lines]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True, timeout=60)
    return done.stdout.splitlines()


def fish(folder: Path, lines: list[str]) -> list[str]:
    """Return what fish offers for the last word of each line, without its description."""
    tree = unpacked("fish")
    asked = "; ".join(f"echo (complete -C 'nearstream {line}')[1]" for line in lines)
    command = [str(tree.program("fish")), "--no-config", "-c", f"source script.fish; {asked}"]
    given = os.environ | tree.environment()
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True, timeout=60, env=given)
    return [line.partition("\t")[0] for line in done.stdout.splitlines()]


def zsh(folder: Path, lines: list[str]) -> list[str]:
    """Return the last word of each line after the tab key, read from a terminal."""
    tree = unpacked("zsh-static")
    functions = sorted(
        {str(path.parent) for path in (tree.root / "usr/share/zsh/functions").rglob("*") if path.is_file()}
    )
    ours, its = pty.openpty()
    given = {**os.environ, "TERM": "dumb", "PS1": "> "}
    with subprocess.Popen(
        [str(tree.program("zsh-static")), "-f", "-i"], cwd=folder, env=given, stdin=its, stdout=its, stderr=its
    ) as process:
        os.close(its)
        try:
            os.write(ours, f"fpath=({' '.join(functions)})\n".encode())
            os.write(ours, b"""autoload -U compinit; compinit -u -D; eval "$(cat script.zsh)"; echo rea''dy\n""")
            read_until(ours, "ready")
            return [_completed_by_zsh(ours, line) for line in lines]
        finally:
            process.kill()
            os.close(ours)


def _completed_by_zsh(terminal: int, line: str) -> str:
    os.write(terminal, f"nearstream {line}\t".encode())
    # What follows is typed behind the completed word.
    os.write(terminal, b"\x01echo 'completed '\n")
    return read_until(terminal, "\ncompleted ", "\n").strip().rpartition(" ")[2]


def read_until(terminal: int, *texts: str, within_seconds: float = 60.0) -> str:
    """Return what follows the last of these texts, which come one after the other, up to the end of its line."""
    seen, deadline = "", time.monotonic() + within_seconds
    while not re.search(".*".join(map(re.escape, texts)), seen, re.DOTALL):
        left = deadline - time.monotonic()
        assert left > 0, seen
        if select.select([terminal], [], [], left)[0]:
            seen += os.read(terminal, 65_536).decode(errors="replace").replace("\r", "")
    return seen.rpartition(texts[0])[2].partition("\n")[0]
