"""The ways to install the command that docs/install.md describes, beside those of `test_wheel.py`."""

import json
import re
import subprocess
from pathlib import Path

import pytest

from tests.devstack.parts import ROOT, list_parts, tools
from tests.devstack.server import run_to_end

pytestmark = pytest.mark.foreign


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """Return a copy of what is committed."""
    run_to_end(["git", "clone", "--quiet", str(ROOT), str(tmp_path / "copy")], purpose="copying the checkout")
    return tmp_path / "copy"


@pytest.mark.parametrize("way", [["pipx", "install"], ["uv", "tool", "install"]], ids=["pipx", "uv"])
def test_the_command_is_installed_in_an_environment_of_its_own(way: list[str], copy: Path, tmp_path: Path) -> None:
    names = {"PIPX_HOME": "home", "PIPX_BIN_DIR": "bin", "UV_TOOL_DIR": "home", "UV_TOOL_BIN_DIR": "bin"}
    places = [f"{name}={tmp_path / folder}" for name, folder in names.items()]
    run_to_end(["env", *places, *tools(), *way, str(copy)], purpose="installing the command")
    told = subprocess.run([tmp_path / "bin/nearstream", "--version"], capture_output=True, text=True, check=True)
    assert told.stdout.startswith("nearstream 0.")


def test_the_list_of_parts_has_all_that_the_lock_of_the_image_names(tmp_path: Path) -> None:
    list_parts(tmp_path / "parts.json")
    listed = json.loads((tmp_path / "parts.json").read_text())
    locked = re.findall(r"^([\w.-]+)==(\S+)", (ROOT / "deploy/requirements.lock").read_text(), re.MULTILINE)
    assert {(part["name"], part["version"]) for part in listed["components"]} == set(locked)
    assert (listed["bomFormat"], listed["metadata"]["component"]["name"]) == ("CycloneDX", "nearstream")
