"""The programs that tests start are unpacked whole, whatever this machine has."""

import re
from pathlib import Path

import pytest

from tests.devstack import cache, debian
from tests.devstack.cache import cached
from tests.devstack.debian import PACKAGES, needed, unpacked
from tests.devstack.server import StackUnavailableError

_INSTALLED = """\
Package: {name}
Status: install ok installed
Architecture: {architecture}
Multi-Arch: same
Version: 999
Maintainer: nobody
Description: a package that this machine seems to have

"""


def test_what_a_tree_needs_does_not_depend_on_what_is_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    unpacked("swaks")  # brings the lists of packages
    files = {package: needed(package) for package in PACKAGES}
    names = sorted({re.split("[_:]", file)[0] for some in files.values() for file in some})
    (architecture,) = {file.removesuffix(".deb").rpartition("_")[2] for some in files.values() for file in some} - {
        "all"
    }
    half = [_INSTALLED.format(name=name, architecture=architecture) for name in names[::2]]
    (tmp_path / "status").write_text("".join(half))
    (tmp_path / "apt.conf").write_text(f'Dir::State::status "{tmp_path / "status"}";\n')
    monkeypatch.setenv("APT_CONFIG", str(tmp_path / "apt.conf"))

    assert {package: needed(package) for package in PACKAGES} == files
    assert any(file.startswith("chromium-common_") for file in files["chromium-headless-shell"])


@pytest.mark.parametrize("package", PACKAGES)
def test_a_tree_holds_a_program_that_starts(package: str) -> None:
    assert unpacked(package).root.is_dir()


def test_a_broken_tree_is_made_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "cache_folder", lambda: tmp_path)
    made: list[Path] = []

    def download(folder: Path) -> None:
        folder.mkdir()
        (folder / "program").touch()
        made.append(folder)

    def check(folder: Path) -> None:
        if not (folder / "program").exists():
            raise StackUnavailableError("no program")

    tree = cached("kind-tree", "a program", download, check)
    assert cached("kind-tree", "a program", download, check) == tree
    assert len(made) == 1
    (tree / "program").unlink()
    assert (cached("kind-tree", "a program", download, check) / "program").exists()
    assert len(made) == 2


def test_what_is_installed_is_taken_where_nothing_can_be_downloaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cache, "cache_folder", lambda: tmp_path)
    monkeypatch.setattr(debian, "cache_folder", lambda: tmp_path)
    (tmp_path / "apt.conf").write_text('Dir::Etc::sourcelist "/dev/null";\nDir::Etc::sourceparts "/dev/null";\n')
    monkeypatch.setenv("APT_CONFIG", str(tmp_path / "apt.conf"))
    starts, fails = debian._Recipe(("usr/bin/dpkg", "--version")), debian._Recipe(("usr/bin/dpkg", "--no-such-option"))
    monkeypatch.setattr(debian, "_RECIPES", {"dpkg": starts, "swaks-of-nobody": starts})

    assert unpacked("dpkg").root == Path("/")
    with pytest.raises(StackUnavailableError, match="apt-get failed"):
        unpacked("swaks-of-nobody")
    unpacked.cache_clear()
    monkeypatch.setattr(debian, "_RECIPES", {"dpkg": fails})
    with pytest.raises(StackUnavailableError, match="no-such-option"):
        unpacked("dpkg")
    unpacked.cache_clear()


def test_a_tree_is_that_of_its_recipe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "cache_folder", lambda: tmp_path)
    monkeypatch.setattr(debian, "_download", lambda _, tree: tree.mkdir())
    monkeypatch.setattr(debian, "_try", lambda *_: None)
    roots = []
    for argument in ("--version", "--help", "--version"):
        unpacked.cache_clear()
        monkeypatch.setattr(debian, "_RECIPES", {"swaks": debian._Recipe(("usr/bin/swaks", argument))})
        roots.append(unpacked("swaks").root)
    unpacked.cache_clear()
    assert roots[0] == roots[2] != roots[1]
