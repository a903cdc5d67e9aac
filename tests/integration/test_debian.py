"""The programs that tests start are unpacked whole, whatever this machine has."""

import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.devstack import cache, debian
from tests.devstack.cache import cached
from tests.devstack.debian import PACKAGES, needed, unpacked
from tests.devstack.server import StackUnavailableError

pytestmark = pytest.mark.foreign

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
    files = needed(*PACKAGES)  # all at once, because apt takes a second for each list
    names = sorted({re.split("[_:]", file)[0] for file in files})
    (architecture,) = {file.removesuffix(".deb").rpartition("_")[2] for file in files} - {"all"}
    half = [_INSTALLED.format(name=name, architecture=architecture) for name in names[::2]]
    (tmp_path / "status").write_text("".join(half))
    (tmp_path / "apt.conf").write_text(f'Dir::State::status "{tmp_path / "status"}";\n')
    monkeypatch.setenv("APT_CONFIG", str(tmp_path / "apt.conf"))

    assert needed(*PACKAGES) == files
    assert any(file.startswith("chromium-common_") for file in files)


@pytest.mark.parametrize("package", PACKAGES)
def test_a_tree_holds_a_program_that_starts(package: str) -> None:
    assert unpacked(package).root.is_dir()


def removed(tree: Path) -> None:
    shutil.rmtree(tree / "lib")


def cut(tree: Path) -> None:
    (tree / "lib/data").write_bytes(b"12")


def without_link(tree: Path) -> None:
    (tree / "link").unlink()


def failing(tree: Path) -> None:
    (tree / "program").write_text("fails")


def left_by_a_kill(tree: Path) -> None:
    """Leave what a process leaves that is killed in its download."""
    shutil.rmtree(tree)
    (tree.parent / f"{tree.name}.part-1" / "whole").mkdir(parents=True)


@pytest.mark.parametrize("damage", [removed, cut, without_link, failing, left_by_a_kill])
def test_a_broken_tree_is_made_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, damage: Callable[[Path], None]
) -> None:
    monkeypatch.setattr(cache, "cache_folder", lambda: tmp_path)
    made: list[Path] = []

    def download(folder: Path) -> None:
        (folder / "lib").mkdir(parents=True)
        (folder / "lib/data").write_bytes(b"123")
        (folder / "lib/of a program \udcff").touch()
        (folder / "link").symlink_to("lib/of nobody")
        (folder / "program").write_text("works")
        made.append(folder)

    def check(folder: Path) -> None:
        if (folder / "program").read_text() != "works":
            raise StackUnavailableError("it fails")

    tree = cached("kind-tree", "a program", download, check)
    (tree / "written later").touch()
    assert cached("kind-tree", "a program", download, check) == tree
    assert len(made) == 1
    damage(tree)
    assert cached("kind-tree", "a program", download, check) == tree
    assert len(made) == 2
    assert (tree / "lib/data").read_bytes() == b"123"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["kind-tree", "kind-tree.files", "kind.lock"]


def test_a_tree_without_a_list_is_listed_as_it_stands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "cache_folder", lambda: tmp_path)
    (tmp_path / "kind-tree").mkdir()
    (tmp_path / "kind-tree" / "program").touch()
    cached("kind-tree", "a program", lambda folder: folder.mkdir())
    (tmp_path / "kind-tree" / "program").unlink()
    assert not any(cached("kind-tree", "a program", lambda folder: folder.mkdir()).iterdir())


def test_what_was_half_written_is_downloaded_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept, (archive, *_) = debian._apt_folder(), needed("wget")
    for room in (cache, debian):
        monkeypatch.setattr(room, "cache_folder", lambda: tmp_path)
    ours = debian._apt_folder()
    shutil.copytree(kept / "lists", ours / "lists")
    (ours / "updated").touch()
    for path in (ours / "lists").glob("*_Packages*"):
        os.truncate(path, path.stat().st_size // 2)
    (ours / "cache/archives").mkdir(parents=True)
    (ours / "cache/archives" / archive).write_bytes(b"half")
    unpacked.cache_clear()
    assert unpacked("wget").program("wget").is_relative_to(tmp_path)
    assert (ours / "cache/archives" / archive).stat().st_size > len(b"half")
    unpacked.cache_clear()


def test_a_program_on_the_path_is_not_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("chromium", "chromium-headless-shell", "fish", "prometheus", "rspamd", "postconf"):
        (tmp_path / name).write_text("#!/bin/sh\nexit 1\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    unpacked.cache_clear()
    for package, name in (
        ("fish", "fish"),
        ("prometheus", "prometheus"),
        ("rspamd", "rspamd"),
        ("postfix", "postconf"),
    ):
        assert unpacked(package).program(name).is_relative_to(cache.cache_folder())


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
