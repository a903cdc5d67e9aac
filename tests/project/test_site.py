"""The documentation site is whole, and a broken link ends its build."""

import shutil
from pathlib import Path

import pytest

from tests.devstack.site import CONFIG, build

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"


@pytest.mark.foreign
def test_the_site_has_each_page_with_its_pictures_and_the_docstrings(tmp_path: Path) -> None:
    done = build(CONFIG, tmp_path)
    assert done.returncode == 0, done.stderr[-2000:]
    assert (tmp_path / "operations/index.html").exists()
    assert "watches a stream of documents on Kafka" in (tmp_path / "index.html").read_text()
    assert (tmp_path / "live/live.png").exists()
    assert "Finds how arriving documents relate" in (tmp_path / "python/index.html").read_text()


@pytest.mark.foreign
@pytest.mark.parametrize("broken", ["[x](nothing.md)", "[x](design.md#nowhere)", "::: nearstream.streams.nothing"])
def test_what_leads_nowhere_ends_the_build(tmp_path: Path, broken: str) -> None:
    shutil.copytree(DOCS, tmp_path / "docs")
    shutil.copy(ROOT / "README.md", tmp_path)
    (tmp_path / "src").symlink_to(ROOT / "src")
    with (tmp_path / "docs/glossary.md").open("a") as page:
        page.write(f"\n{broken}\n")
    assert build(tmp_path / "docs/site/mkdocs.yml", tmp_path / "site").returncode != 0
