"""Make the pictures of the live page in the documents: `python -m tests.devstack.pictures`."""

import asyncio
import re
import subprocess
import sys
from pathlib import Path

from playwright.async_api import Page, expect

from tests.devstack.chromium import chromium

FOLDER = Path(__file__).parents[2] / "docs/live"
_SIZE = {"width": 1200, "height": 760}
_PATIENCE_MS = 120_000
# Views with the theme, and what has to be there before the picture is made.
_PICTURES = (
    ("live", "dark", "/live", "#storm"),
    ("family", "light", None, "#members tr"),
    ("letters", "light", "/letters/invalid_time", "#letters tr"),
    ("pair", "light", "/pair/web/pep-0313%402025-02/pep-0313%402003-04", "#rules tr.decided"),
)


async def _draw(address: str) -> None:
    """Draw each view in the middle of the storm of the demo."""
    expect.set_options(timeout=_PATIENCE_MS)
    FOLDER.mkdir(exist_ok=True)
    async with chromium() as browser:
        for name, scheme, view, there in _PICTURES:
            context = await browser.new_context(
                viewport=_SIZE, color_scheme="dark" if scheme == "dark" else "light", reduced_motion="reduce"
            )
            page = await context.new_page()
            await page.goto(f"{address}#{view or '/live'}")
            await _in_the_storm(page, name)
            if view is None:
                await page.click("#storm")
            await expect(page.locator(there).first).to_be_visible()
            await page.wait_for_timeout(1_500)
            await page.screenshot(path=FOLDER / f"{name}.png")
            await context.close()


async def _in_the_storm(page: Page, name: str) -> None:
    if name in ("live", "family"):
        await expect(page.locator("#storm")).to_contain_text(re.compile(r"[3-9]\d\d copies"))


def main() -> None:
    """Run the demo until the pictures are made."""
    command = [sys.executable, "-m", "nearstream", "demo", "--live", "--no-open"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as demo:
        try:
            line = demo.stdout.readline() if demo.stdout else ""
            asyncio.run(_draw(line.split()[2]))
        finally:
            demo.terminate()


if __name__ == "__main__":
    main()
