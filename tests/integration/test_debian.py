"""The programs that tests start are unpacked whole, whatever this machine has."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.devstack import cache, debian
from tests.devstack.cache import cached
from tests.devstack.debian import unpacked
from tests.devstack.server import StackUnavailableError

pytestmark = pytest.mark.foreign


def cut(tree: Path) -> None:
    (tree / "lib/data").write_bytes(b"12")


def failing(tree: Path) -> None:
    (tree / "program").write_text("fails")


def left_by_a_kill(tree: Path) -> None:
    """Leave what a process leaves that is killed in its download."""
    shutil.rmtree(tree)
    (tree.parent / f"{tree.name}.part-1" / "whole").mkdir(parents=True)


@pytest.mark.parametrize("damage", [cut, failing, left_by_a_kill])
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
