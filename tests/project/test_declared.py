"""What the package declares: its public names and what it depends on."""

import ast
import re
import sys
import tomllib
from pathlib import Path
from pkgutil import resolve_name

import pytest
from packaging.markers import Marker
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import nearstream

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def test_the_lists_of_public_names_agree_and_the_page_of_python_has_each() -> None:
    tree = ast.parse((ROOT / "src/nearstream/__init__.py").read_text(encoding="utf-8"))
    (checked,) = (node for node in tree.body if isinstance(node, ast.If))
    imported = {
        alias.name: node.module for node in checked.body if isinstance(node, ast.ImportFrom) for alias in node.names
    }
    assert sorted(imported) == sorted(nearstream.__all__)
    assert imported == {name: f"nearstream.{module}" for name, module in nearstream._MODULE_OF.items()}
    for name, module in imported.items():
        assert getattr(nearstream, name) is getattr(sys.modules[str(module)], name)
    documented = re.findall(r"^::: (nearstream\.[\w.]+)$", (ROOT / "docs/python.md").read_text(), re.MULTILINE)
    assert {place.rpartition(".")[2]: resolve_name(place) for place in documented} == {
        name: getattr(nearstream, name) for name in nearstream.__all__
    }
    with pytest.raises(AttributeError, match="no attribute 'absent'"):
        nearstream.absent  # noqa: B018 - looking it up is what fails


def test_s22_the_lock_of_the_image_has_what_the_project_needs_by_hash() -> None:
    """Each line pins a version, which `pyproject.toml` allows, by the hashes of its files."""
    lock = (ROOT / "deploy/requirements.lock").read_text().replace("\\\n", " ")
    pinned: dict[str, list[tuple[Marker | None, str]]] = {}
    for line in lock.splitlines():
        requirement, *hashes = re.split(r"\s+--hash=sha256:", line.strip())
        assert hashes, line
        assert all(re.fullmatch(r"[0-9a-f]{64}", each) for each in hashes), line
        one = Requirement(requirement)
        (version,) = one.specifier
        assert version.operator == "==", line
        pinned.setdefault(canonicalize_name(one.name), []).append((one.marker, version.version))
    extras = [each for name in ("html", "crawl", "msk") for each in PROJECT["optional-dependencies"][name]]
    for text in [*PROJECT["dependencies"], *(each for each in extras if not each.startswith("nearstream"))]:
        needed = Requirement(text)
        found = pinned[canonicalize_name(needed.name)]
        assert all(needed.specifier.contains(version) for _, version in found), text
