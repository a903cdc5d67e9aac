"""Programs from packages of Debian, unpacked into a folder of ours, so that nothing of the machine changes."""

import os
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.devstack.cache import cache_folder, cached
from tests.devstack.server import StackUnavailableError, end_with_parent, say

DOWNLOAD_SECONDS = 240.0
_TOOLS = ("apt-get", "dpkg-deb")
_MACHINE = f"{os.uname().machine}-linux-gnu"  # the folder of what is not the same on all machines


@dataclass(frozen=True)
class Unpacked:
    """A tree of unpacked packages.

    Attributes:
        root: What would be `/` if they were installed.
    """

    root: Path

    def program(self, name: str) -> Path:
        """Return the path of a program.

        Raises:
            StackUnavailableError: The packages do not have it.
        """
        for folder in ("usr/sbin", "usr/bin"):
            if (path := self.root / folder / name).exists():
                return path
        raise StackUnavailableError(f"no {name}: it is not in {self.root}, remove that folder to download it again")

    def environment(self, *more: Path) -> dict[str, str]:
        """Return the variable with which programs find their libraries, those in `more` first."""
        folders = [*more, *(self.root / folder / _MACHINE for folder in ("usr/lib", "lib"))]
        return {"LD_LIBRARY_PATH": ":".join(str(folder) for folder in folders if folder.exists())}

    def perl(self, name: str, *switches: str) -> list[str]:
        """Return the command that runs a program in Perl with the modules of the tree.

        Raises:
            StackUnavailableError: There is no such program, or no Perl.
        """
        own = self.root / "usr/bin/perl"
        perl = str(own) if own.exists() else shutil.which("perl")
        if perl is None:
            raise StackUnavailableError(f"no {name}: there is no perl on PATH")
        shared, machine = self.root / "usr/share", self.root / "usr/lib" / _MACHINE
        modules = [*shared.glob("perl5"), *shared.glob("perl/5.*"), *machine.glob("perl*/5.*")]
        return [perl, *switches, *(f"-I{folder}" for folder in modules), str(self.program(name))]


def unpacked(package: str) -> Unpacked:
    """Return a tree with a package, and with what it needs and this machine lacks.

    It is the machine itself if the package is installed. Else apt-get downloads it once per user. That needs no root
    and changes nothing else: the package sources are those of this machine, but lists, downloads and the tree are in a
    folder of ours.

    Raises:
        StackUnavailableError: There is no apt-get, or no download.
    """
    if missing := [tool for tool in _TOOLS if shutil.which(tool) is None]:
        raise StackUnavailableError(f"no {package}: its Debian package is needed, and {missing[0]} is not on PATH")
    if _is_installed(package):
        return Unpacked(Path("/"))
    return Unpacked(cached(f"debian-{_release()}-{package}", package, lambda folder: _download(package, folder)))


def _is_installed(package: str) -> bool:
    asked = ["dpkg-query", "--show", "--showformat=${db:Status-Status}", package]
    return subprocess.run(asked, capture_output=True, text=True, check=False).stdout == "installed"


def _release() -> str:
    """Return the name of this release of the system, whose packages fit its libraries."""
    lines = Path("/etc/os-release").read_text().splitlines()
    values = dict(line.partition("=")[::2] for line in lines)
    return "".join(letter for letter in values.get("VERSION_CODENAME", "") if letter.isalnum()) or "unknown"


def _download(package: str, tree: Path) -> None:
    """Download a package and what it needs, and unpack them."""
    say(f"downloading {package} from Debian, once")
    lists = cache_folder() / f"debian-{_release()}-lists"
    (lists / "partial").mkdir(parents=True, exist_ok=True)
    cache = tree.with_name("cache")
    (cache / "archives/partial").mkdir(parents=True)
    options = {
        "Dir::State::lists": lists,
        "Dir::Cache": cache,
        "Debug::NoLocking": "1",
        "APT::Sandbox::User": "root",
        "Acquire::Languages": "none",
        "Acquire::Retries": "2",
        "Acquire::http::Timeout": "15",
        "Acquire::https::Timeout": "15",
    }
    apt = ["apt-get", "-qq", "--yes", "--no-install-recommends"]
    apt += [word for name, value in options.items() for word in ("-o", f"{name}={value}")]
    _run([*apt, "update"])
    _run([*apt, "--download-only", "install", package])
    tree.mkdir()
    for archive in sorted((cache / "archives").glob("*.deb")):
        _run(["dpkg-deb", "--extract", str(archive), str(tree)])


def _run(command: Sequence[str]) -> None:
    environment = os.environ | {"LC_ALL": "C", "DEBIAN_FRONTEND": "noninteractive"}
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            timeout=DOWNLOAD_SECONDS,
            env=environment,
            preexec_fn=end_with_parent(),
        )
    except subprocess.TimeoutExpired:
        raise StackUnavailableError(f"{command[0]} did not end within {DOWNLOAD_SECONDS:g} s") from None
    if done.returncode != 0:
        raise StackUnavailableError(
            f"{command[0]} failed with exit code {done.returncode}: {done.stdout[-800:].strip()}"
        )
