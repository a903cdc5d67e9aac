"""Programs from packages of Debian, unpacked into a folder of ours, so that nothing of the machine changes."""

import hashlib
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

from tests.devstack.cache import cache_folder, cached
from tests.devstack.server import StackUnavailableError, run_to_end, say

DOWNLOAD_SECONDS = 240.0
_LISTS_SECONDS = 3_600.0
_TOOLS = ("apt-get", "dpkg-deb")
_MAKING = 3  # counts the changes of how a tree is made from its recipe
# The dynamic loader is that of the machine, and the C library has to fit it.
_OF_THE_MACHINE = {"libc6", "libc-bin"}
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


@dataclass(frozen=True)
class _Recipe:
    """How a tree is made, and how it is tried.

    Attributes:
        packages: What is unpacked beside the package of the tree.
        folders: Empty folders that a program of the tree looks for.
        check: What is run to see that the tree is whole: the path of a program in it, and arguments.
        perl: Switches of the program, if it is in Perl.
        is_rare: Only commands that need long use it, so that no usual run of the tests downloads it.
    """

    check: tuple[str, ...]
    packages: tuple[str, ...] = ()
    folders: tuple[str, ...] = ()
    perl: tuple[str, ...] | None = None
    is_rare: bool = False


_RECIPES = {
    "chromium-headless-shell": _Recipe(
        ("usr/lib/chromium/chromium-headless-shell", "--no-sandbox", "--dump-dom", "about:blank")
    ),
    "dovecot-imapd": _Recipe(("usr/sbin/dovecot", "--version"), packages=("dovecot-sieve",)),
    "fish": _Recipe(("usr/bin/fish", "--no-config", "-c", "complete -C 'cd '"), folders=("usr/etc/fish",)),
    "postfix": _Recipe(("usr/sbin/postconf", "-d", "mail_version")),
    "prometheus": _Recipe(("usr/bin/prometheus", "--version")),
    "prometheus-alertmanager": _Recipe(("usr/bin/prometheus-alertmanager", "--version")),
    "postgresql-15": _Recipe(("usr/lib/postgresql/15/bin/postgres", "--version"), is_rare=True),
    "redis-server": _Recipe(("usr/bin/redis-check-rdb", "--version"), is_rare=True),
    "rspamd": _Recipe(("usr/bin/rspamd", "--version")),
    "spamassassin": _Recipe(("usr/bin/spamassassin", "--version"), perl=("-T",)),
    "swaks": _Recipe(("usr/bin/swaks", "--version"), perl=()),
    "systemd": _Recipe(("usr/bin/systemd-analyze", "--version")),
    "wget": _Recipe(("usr/bin/wget", "--version")),
    "zsh-static": _Recipe(("bin/zsh-static", "-f", "-c", "exit"), packages=("zsh-common",)),
}
PACKAGES = tuple(package for package, recipe in _RECIPES.items() if not recipe.is_rare)


@cache
def unpacked(package: str) -> Unpacked:
    """Return a tree with one of `PACKAGES` and all that it needs.

    It is the same tree on every machine, whatever is installed there, because a part of the machine with a part of a
    tree is what nobody has tried. apt-get downloads it once per user. That needs no root and changes nothing else: the
    package sources are those of this machine, but lists, downloads and the tree are in a folder of ours. A tree counts
    only if its program starts, and is made anew if it does not. Where there is no download, it is the machine itself,
    if the package is installed.

    Raises:
        StackUnavailableError: There is no apt-get, or no download.
    """
    recipe = f"{_MAKING} {_RECIPES[package]}"  # a tree of another recipe is another tree
    name = f"debian-{_release()}-{package}-{hashlib.sha256(recipe.encode()).hexdigest()[:8]}"
    try:
        return Unpacked(cached(name, package, partial(_download, package), partial(_try, package)))
    except StackUnavailableError:
        if not _is_installed(package):
            raise
        _try(package, Path("/"))
        return Unpacked(Path("/"))


def _is_installed(package: str) -> bool:
    asked = ["dpkg-query", "--show", "--showformat=${db:Status-Status}", package]
    return subprocess.run(asked, capture_output=True, text=True, check=False).stdout == "installed"


def _try(package: str, root: Path) -> None:
    """Start the program of a tree.

    Raises:
        StackUnavailableError: It does not start, or it fails.
    """
    tree, recipe = Unpacked(root), _RECIPES[package]
    path, *arguments = recipe.check
    program = [str(root / path)] if recipe.perl is None else tree.perl(Path(path).name, *recipe.perl)
    with tempfile.TemporaryDirectory(prefix="nearstream-try-") as home:
        try:
            _run([*program, *arguments], tree.environment(*tree.private_libraries) | {"HOME": home})
        except OSError as error:
            raise StackUnavailableError(f"no {package}: {program[0]} does not start: {error.strerror}") from None


def _release() -> str:
    """Return the name of this release of the system, whose packages fit its libraries."""
    lines = Path("/etc/os-release").read_text().splitlines()
    values = dict(line.partition("=")[::2] for line in lines)
    return "".join(letter for letter in values.get("VERSION_CODENAME", "") if letter.isalnum()) or "unknown"


def needed(*packages: str) -> list[str]:
    """Return the names of the files of `PACKAGES` and of all packages that they need, whatever is installed.

    Raises:
        StackUnavailableError: There is no download.
    """
    with tempfile.TemporaryDirectory(prefix="nearstream-apt-") as folder:  # what was downloaded would not be listed
        (Path(folder) / "partial").mkdir()
        nowhere = ["-o", f"Dir::Cache::archives={folder}"]
        wanted = [name for package in packages for name in (package, *_RECIPES[package].packages)]
        asked = [*_apt_get(), *nowhere, "--print-uris", "install", *wanted]
        lines = _run(asked).splitlines()
    return [words[1] for words in map(str.split, lines) if len(words) > 1 and words[1].endswith(".deb")]


def _apt_get() -> list[str]:
    """Return the start of a command that finds no package installed, and keeps lists and downloads in our folder."""
    home = _apt_folder()
    for folder in ("lists/partial", "cache/archives/partial"):
        (home / folder).mkdir(parents=True, exist_ok=True)
    status = home / "status"
    status.touch()
    options = {
        "Dir::State::lists": home / "lists",
        "Dir::State::status": status,
        "Dir::Cache": home / "cache",
        # Images of Debian clear these names, and then each command reads the lists anew, for a second.
        "Dir::Cache::srcpkgcache": "lists.bin",
        "Dir::Cache::pkgcache": "packages.bin",
        "Debug::NoLocking": "1",
        "APT::Sandbox::User": "root",
        "Acquire::Languages": "none",
        "Acquire::Retries": "2",
        "Acquire::http::Timeout": "15",
        "Acquire::https::Timeout": "15",
    }
    command = ["apt-get", "-qq", "--yes", "--no-install-recommends"]
    return [*command, *(word for name, value in options.items() for word in ("-o", f"{name}={value}"))]


def _apt_folder() -> Path:
    return cache_folder() / f"debian-{_release()}-apt"


def _forget_lists() -> None:
    shutil.rmtree(_apt_folder() / "lists", ignore_errors=True)
    for name in ("updated", "cache/lists.bin", "cache/packages.bin"):
        (_apt_folder() / name).unlink(missing_ok=True)


def _update(apt: Sequence[str]) -> None:
    """Download the lists of packages, unless that was done a moment ago."""
    done = _apt_folder() / "updated"
    if not done.exists() or time.time() - done.stat().st_mtime > _LISTS_SECONDS:
        _run([*apt, "update"])
        done.touch()


def _download(package: str, tree: Path) -> None:
    """Download a package and what it needs, and unpack them.

    Raises:
        StackUnavailableError: There is no apt-get, or no download.
    """
    if missing := [tool for tool in _TOOLS if shutil.which(tool) is None]:
        raise StackUnavailableError(f"no {package}: its Debian package is needed, and {missing[0]} is not on PATH")
    say(f"downloading {package} from Debian, once")
    try:
        _unpack(package, tree)
    except StackUnavailableError:  # what is kept may be half of what it was, as after a full disk
        shutil.rmtree(tree, ignore_errors=True)
        _forget_lists()
        _update(_apt_get())
        shutil.rmtree(_apt_folder() / "cache")
        _unpack(package, tree)


def _unpack(package: str, tree: Path) -> None:
    recipe, apt = _RECIPES[package], _apt_get()
    _update(apt)
    files = needed(package)
    _run([*apt, "--download-only", "install", package, *recipe.packages])
    tree.mkdir()
    for name in files:
        if name.partition("_")[0] not in _OF_THE_MACHINE:
            _run(["dpkg-deb", "--extract", str(_apt_folder() / "cache/archives" / name), str(tree)])
    for folder in ("bin", "lib", "sbin"):  # which packages leave out from Debian 13 on
        if not (tree / folder).exists():
            (tree / folder).symlink_to(f"usr/{folder}")
    for folder in recipe.folders:
        (tree / folder).mkdir(parents=True, exist_ok=True)


def _run(command: Sequence[str], more: dict[str, str] | None = None) -> str:
    environment = os.environ | {"LC_ALL": "C", "DEBIAN_FRONTEND": "noninteractive"} | (more or {})
    return run_to_end(command, purpose=command[0], seconds=DOWNLOAD_SECONDS, environment=environment)


def main() -> None:
    """Make all trees that are not there yet, so that no test waits for them."""
    for package in PACKAGES:
        with suppress(StackUnavailableError):  # the test that needs it says why
            unpacked(package)


if __name__ == "__main__":
    main()
