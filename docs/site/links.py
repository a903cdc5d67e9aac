"""Hooks of MkDocs: what a page of the site shows of the repository."""

import re
from pathlib import Path
from typing import Any

_LINK = re.compile(r"(?<!!)\[([^\]]*)\]\(([^)\s]*)\)")
_TARGET = re.compile(r"\]\((?!https?:|#)")


def on_page_markdown(markdown: str, page: Any, config: Any, **_: Any) -> str:  # noqa: ANN401 - the types of MkDocs
    """Begin the front page with the README, and replace links that leave docs/ by their text and their path."""
    if page.file.src_uri == "index.md":
        markdown = _front_page(Path(config.docs_dir).parent / "README.md") + markdown.replace("# ", "## ", 1)
    depth = page.file.src_uri.count("/")

    def shown(link: re.Match[str]) -> str:
        text, target = link.groups()
        leaves = target.startswith("../" * (depth + 1))
        return f"{text} (`{target.removeprefix('../' * (depth + 1))}`)" if leaves else link[0]

    return _LINK.sub(shown, markdown)


def _front_page(readme: Path) -> str:
    """Return the README up to its list of pages, with links as from docs/."""
    text = readme.read_text(encoding="utf-8").partition("## Where to go next")[0]
    return _TARGET.sub("](../", text).replace("](../docs/", "](")
