"""Programs from packages of Debian, unpacked into a folder of ours, so that nothing of the machine changes."""

import hashlib
import os
import platform
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

from tests.devstack.cache import cache_folder, cached
from tests.devstack.server import StackUnavailableError, run_to_end, say

DOWNLOAD_SECONDS = 240.0
_TOOLS = ("apt-get", "dpkg-deb")
# The dynamic loader is that of the machine, and the C library has to fit it.
_OF_THE_MACHINE = {"libc6", "libc-bin"}
_MACHINE = f"{os.uname().machine}-linux-gnu"  # the folder of what is not the same on all machines


@dataclass(frozen=True)
class Unpacked:
    """A tree of unpacked packages."""

    root: Path  # what would be `/` if they were installed

    def program(self, name: str) -> Path:
        """Return the path of a program."""
        for folder in ("usr/sbin", "usr/bin", "bin"):
            if (path := self.root / folder / name).exists():
                return path
        raise StackUnavailableError(f"no {name}: it is not in {self.root}, remove that folder to download it again")

    @property
    def private_libraries(self) -> tuple[Path, ...]:
        """The folders of libraries that only one program of the tree needs."""
        libraries = self.root / "usr/lib"
        found = (folder for name in ("pulseaudio", "systemd") for folder in libraries.glob(f"*-linux-gnu/{name}"))
        return libraries / "postfix", libraries / "rspamd", libraries / "dovecot", *found

    def environment(self, *more: Path) -> dict[str, str]:
        """Return the variable with which programs find their libraries, those in `more` first."""
        folders = [*more, *(self.root / folder / _MACHINE for folder in ("usr/lib", "lib"))]
        return {"LD_LIBRARY_PATH": ":".join(str(folder) for folder in folders if folder.exists())}

    def perl(self, name: str, *switches: str) -> list[str]:
        """Return the command that runs a program in Perl with the modules of the tree."""
        own = self.root / "usr/bin/perl"
        perl = str(own) if own.exists() else shutil.which("perl")
        if perl is None:
            raise StackUnavailableError(f"no {name}: there is no perl on PATH")
        shared, machine = self.root / "usr/share", self.root / "usr/lib" / _MACHINE
        modules = [*shared.glob("perl5"), *shared.glob("perl/5.*"), *machine.glob("perl*/5.*")]
        return [perl, *switches, *(f"-I{folder}" for folder in modules), str(self.program(name))]


@dataclass(frozen=True)
class _Recipe:
    """How a tree is made, and how it is tried."""

    check: tuple[str, ...]  # what is run to see that the tree is whole: the path of a program in it, and arguments
    packages: tuple[str, ...] = ()  # what is unpacked beside the package of the tree
    folders: tuple[str, ...] = ()  # empty folders that a program of the tree looks for
    perl: tuple[str, ...] | None = None  # switches of the program, if it is in Perl


_RECIPES = {
    "chromium-headless-shell": _Recipe(
        ("usr/lib/chromium/chromium-headless-shell", "--no-sandbox", "--dump-dom", "about:blank")
    ),
    "dovecot-imapd": _Recipe(("usr/sbin/dovecot", "--version"), packages=("dovecot-sieve",)),
    "postfix": _Recipe(("usr/sbin/postconf", "-d", "mail_version")),
    "prometheus": _Recipe(("usr/bin/prometheus", "--version")),
    "prometheus-alertmanager": _Recipe(("usr/bin/prometheus-alertmanager", "--version")),
    "postgresql-15": _Recipe(("usr/lib/postgresql/15/bin/postgres", "--version")),
    "redis-server": _Recipe(("usr/bin/redis-check-rdb", "--version")),
    "rspamd": _Recipe(("usr/bin/rspamd", "--version")),
    "spamassassin": _Recipe(("usr/bin/spamassassin", "--version"), perl=("-T",)),
    "swaks": _Recipe(("usr/bin/swaks", "--version"), perl=()),
    "systemd": _Recipe(("usr/bin/systemd-analyze", "--version")),
    "wget": _Recipe(("usr/bin/wget", "--version")),
}


@cache
def unpacked(package: str) -> Unpacked:
    """Return a tree with a package that has a recipe, and all that it needs.

    It is the same tree on every machine, whatever is installed there, because a part of the machine with a part of a
    tree is what nobody has tried. apt-get downloads it once per user. That needs no root and changes nothing else: the
    package sources are those of this machine, but lists, downloads and the tree are in a folder of ours. A tree counts
    only if its program starts, and is made anew if it does not.
    """
    if missing := [tool for tool in _TOOLS if shutil.which(tool) is None]:
        raise StackUnavailableError(f"no {package}: its Debian package is needed, and {missing[0]} is not on PATH")
    release = platform.freedesktop_os_release().get("VERSION_CODENAME", "unknown")
    key = hashlib.sha256(str(_RECIPES[package]).encode()).hexdigest()[:8]  # a tree of another recipe is another tree
    name = f"debian-{release}-{package}-{key}"
    lists = cache_folder() / f"debian-{release}-apt"
    return Unpacked(cached(name, package, partial(_download, package, lists), partial(_try, package)))


def _try(package: str, root: Path) -> None:
    """Start the program of a tree."""
    tree, recipe = Unpacked(root), _RECIPES[package]
    path, *arguments = recipe.check
    program = [str(root / path)] if recipe.perl is None else tree.perl(Path(path).name, *recipe.perl)
    with tempfile.TemporaryDirectory(prefix="nearstream-try-") as home:
        try:
            _run([*program, *arguments], tree.environment(*tree.private_libraries) | {"HOME": home})
        except OSError as error:
            raise StackUnavailableError(f"no {package}: {program[0]} does not start: {error.strerror}") from None


def _download(package: str, lists: Path, tree: Path) -> None:
    """Download a package and what it needs, and unpack them."""
    say(f"downloading {package} from Debian, once")
    recipe = _RECIPES[package]
    with tempfile.TemporaryDirectory(prefix="nearstream-apt-") as folder:
        apt = _apt_get(lists, Path(folder))
        _run([*apt, "update"])
        _run([*apt, "--download-only", "install", package, *recipe.packages])
        tree.mkdir()
        for file in sorted(Path(folder).glob("archives/*.deb")):
            if file.name.partition("_")[0] not in _OF_THE_MACHINE:
                _run(["dpkg-deb", "--extract", str(file), str(tree)])
    for name in ("bin", "lib", "sbin"):  # which packages leave out from Debian 13 on
        if not (tree / name).exists():
            (tree / name).symlink_to(f"usr/{name}")
    for name in recipe.folders:
        (tree / name).mkdir(parents=True, exist_ok=True)


def _apt_get(lists: Path, downloads: Path) -> list[str]:
    """Return the start of a command that finds no package installed, and keeps lists and downloads in these folders."""
    (lists / "partial").mkdir(parents=True, exist_ok=True)
    (downloads / "archives/partial").mkdir(parents=True)
    options = {
        "Dir::State::lists": lists,
        "Dir::State::status": "/dev/null",
        "Dir::Cache": downloads,
        "Debug::NoLocking": "1",
        "APT::Sandbox::User": "root",
        "Acquire::Languages": "none",
        "Acquire::Retries": "2",
        "Acquire::http::Timeout": "15",
        "Acquire::https::Timeout": "15",
    }
    command = ["apt-get", "-qq", "--yes", "--no-install-recommends"]
    return [*command, *(word for name, value in options.items() for word in ("-o", f"{name}={value}"))]


def _run(command: Sequence[str], more: dict[str, str] | None = None) -> str:
    environment = os.environ | {"LC_ALL": "C", "DEBIAN_FRONTEND": "noninteractive"} | (more or {})
    return run_to_end(command, purpose=command[0], seconds=DOWNLOAD_SECONDS, environment=environment)
