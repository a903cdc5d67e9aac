"""A headless Chromium from Debian, for tests of pages."""

import os
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from playwright.async_api import Browser, async_playwright
from playwright.async_api import Page as Page  # exported for a benchmark

from tests.devstack.debian import Unpacked, unpacked

_PACKAGE = "chromium-headless-shell"
_FONTS = """<?xml version="1.0"?>
<fontconfig>
<include ignore_missing="yes">/etc/fonts/fonts.conf</include>
<dir>/usr/share/fonts</dir><dir>{root}/usr/share/fonts</dir><cachedir>{cache}</cachedir>
<alias><family>system-ui</family><prefer><family>DejaVu Sans</family></prefer></alias>
<alias><family>sans-serif</family><prefer><family>DejaVu Sans</family></prefer></alias>
</fontconfig>
"""


@asynccontextmanager
async def chromium() -> AsyncIterator[Browser]:
    """Run a browser for the block."""
    tree = unpacked(_PACKAGE)
    with tempfile.TemporaryDirectory(prefix="chromium-") as folder:
        async with async_playwright() as playwright:
            browser = await playwright.chromium.launch(
                executable_path=tree.root / "usr/lib/chromium" / _PACKAGE,
                args=["--no-sandbox"],  # as root, and in most containers, there is none
                env=_environment(tree, Path(folder)),
                timeout=120_000,
            )
            try:
                yield browser
            finally:
                await browser.close()


def _environment(tree: Unpacked, folder: Path) -> dict[str, str | float | bool]:
    fonts = folder / "fonts.conf"
    fonts.write_text(_FONTS.format(root=tree.root, cache=folder))
    return {**os.environ, **tree.environment(*tree.private_libraries), "FONTCONFIG_FILE": str(fonts)}
