"""Hooks of MkDocs: what a page of the site shows of the repository."""

import re
from typing import Any

_LINK = re.compile(r"(?<!!)\[([^\]]*)\]\(([^)\s]*)\)")


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:  # noqa: ANN401 - the types of MkDocs
    """Replace links that leave docs/ by their text and their path."""
    depth = page.file.src_uri.count("/")

    def shown(link: re.Match[str]) -> str:
        text, target = link.groups()
        leaves = target.startswith("../" * (depth + 1))
        return f"{text} (`{target.removeprefix('../' * (depth + 1))}`)" if leaves else link[0]

    return _LINK.sub(shown, markdown)
