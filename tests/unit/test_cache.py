"""A program that tests download is whole, whatever happened to it before."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.devstack import cache
from tests.devstack.cache import cached
from tests.devstack.server import StackUnavailableError


def failing(tree: Path) -> None:
    (tree / "program").write_text("fails")


def left_by_a_kill(tree: Path) -> None:
    """Leave what a process leaves that is killed in its download."""
    shutil.rmtree(tree)
    (tree.parent / f"{tree.name}.part").mkdir()


@pytest.mark.parametrize("damage", [failing, left_by_a_kill])
def test_a_broken_tree_is_made_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, damage: Callable[[Path], None]
) -> None:
    monkeypatch.setattr(cache, "cache_folder", lambda: tmp_path)
    made: list[Path] = []

    def download(folder: Path) -> None:
        folder.mkdir()
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
    assert sorted(path.name for path in tmp_path.iterdir()) == ["kind-tree", "kind.lock"]
