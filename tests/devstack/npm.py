"""Node.js, and packages from npm in a folder of ours, so that nothing of the machine changes."""

import re
import shutil
import subprocess
from hashlib import sha256
from pathlib import Path

from tests.devstack.cache import cached
from tests.devstack.server import StackUnavailableError, run_to_end, say

NODE_AT_LEAST = (20, 19)
_PROJECT = Path(__file__).with_name("node")
_FILES = ("package.json", "package-lock.json")


def find_node() -> str:
    """Return the path of Node.js.

    Raises:
        StackUnavailableError: There is none on PATH, or it is too old.
    """
    node = shutil.which("node")
    wanted = ".".join(map(str, NODE_AT_LEAST))
    if node is None:
        raise StackUnavailableError(f"no Node.js {wanted} or newer on PATH")
    version = subprocess.run([node, "--version"], capture_output=True, text=True, check=False).stdout
    if tuple(map(int, re.findall(r"\d+", version)[:2])) < NODE_AT_LEAST:
        raise StackUnavailableError(f"Node.js {wanted} or newer expected, {node} is {version.strip()}")
    return node


def npm_packages() -> Path:
    """Return a folder whose `node_modules` holds the packages that `node/package.json` names.

    They are downloaded once per user, in the versions that `node/package-lock.json` names with their checksums.

    Raises:
        StackUnavailableError: There is no npm, or no download.
    """
    name = f"npm-{sha256((_PROJECT / 'package-lock.json').read_bytes()).hexdigest()[:12]}"
    return cached(name, "npm packages", _download)


def _download(folder: Path) -> None:
    npm = shutil.which("npm")
    if npm is None:
        raise StackUnavailableError("no npm packages: they are not downloaded yet, and there is no npm on PATH")
    say("downloading packages from npm (20 MB), once")
    folder.mkdir()
    for name in _FILES:
        shutil.copy(_PROJECT / name, folder)
    install = [npm, "ci", "--prefix", str(folder), "--ignore-scripts", "--no-audit", "--no-fund"]
    run_to_end(install, purpose="downloading packages from npm")
