"""Say what in a text is new, for the two examples that hand only new passages to a retrieval pipeline.

Needs nearstream. It knows the texts of this process. What a whole stream has is asked over the HTTP API.
"""

import asyncio
import re
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime

from msgspec import UNSET

from nearstream import Document, HashKey, Matcher, Signer, local_store, preset, sent_places

PARAGRAPH = re.compile(r"\S(?:.|\n(?!\s*\n))*")
ALMOST_ALL = 0.98  # of a document: what is new in it, with what its sources have


class KnownText:
    """The texts so far, by their signatures."""

    def __init__(self, key: HashKey) -> None:
        """Begin without any. The key is a secret in production."""
        self.scheme = preset("fine", key)
        self.signer, self.matcher = Signer(self.scheme, key), Matcher(local_store(), self.scheme, key)

    def new_passages(self, texts: Iterable[tuple[str, str]]) -> list[list[str]]:
        """Add texts with their ids in their order, and return the paragraphs of each in which something is new.

        It also works where an event loop runs, as in a notebook.
        """
        with ThreadPoolExecutor(1) as thread:
            return thread.submit(asyncio.run, self._all(texts)).result()

    async def _all(self, texts: Iterable[tuple[str, str]]) -> list[list[str]]:
        return [await self._passages(name, text) for name, text in texts]

    async def _passages(self, name: str, text: str) -> list[str]:
        signature = self.signer.sign(Document(id=name, text=text, observed_at=datetime.now(UTC)))
        said = (await self.matcher.match(signature)).verdict if signature.n_bytes else None
        if said and said.novel and said.novel_spans is not UNSET and said.sources:
            told = said.novel.value + sum(source.characters for source in said.sources)
            if told >= ALMOST_ALL * said.characters and len(said.novel_spans) < 16:  # else some are not told
                places = sent_places(text, said.novel_spans, self.scheme.text)
                found = PARAGRAPH.finditer(text)
                return [each[0] for each in found if any(a < each.end() and each.start() < b for a, b in places)]
        return [text] if text.strip() else []
