"""Hand a vector store only the passages that no earlier document has, and follow updates and removals.

Needs nearstream and `pip install usearch`. A document that is known from others gets no vectors of its own. When one of
these changes or is removed, the document is asked about again, so that each text stays in the store as long as any
document has it. `embed` stands for your model: it takes passages and returns one vector for each.
"""

import re
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta

import numpy as np
from msgspec import UNSET
from numpy.typing import NDArray
from usearch.index import Index

from nearstream import Arrival, Document, HashKey, Matcher, Signer, local_store, preset, sent_places

Embed = Callable[[Sequence[str]], NDArray[np.float32]]
KEY = HashKey.public()  # a secret in production
SCHEME = preset("fine", KEY)
PASSAGE = re.compile(r"\S(?:.|\n(?!\s*\n))*")  # a paragraph
ALMOST_ALL = 0.98  # of a document: what is new in it, with what its sources have


class Passages:
    """Passages with their vectors, each under the first document that had it."""

    def __init__(self, embed: Embed, dimensions: int) -> None:
        """Begin without any."""
        self.embed, self.vectors, self.passages = embed, Index(ndim=dimensions), dict[int, str]()
        self.signer, self.matcher = Signer(SCHEME, KEY), Matcher(local_store(), SCHEME, KEY)
        self.texts, self.keys, self.sources = dict[str, str](), dict[str, list[int]](), dict[str, set[str]]()
        self.time, self.next_key = datetime(2026, 1, 1, tzinfo=UTC), 0

    async def put(self, name: str, text: str) -> list[str]:
        """Add a document, or its next state, and return its new passages."""
        resting = await self._take_out(name)
        new = await self._add(name, text)
        for each, its_text in resting.items():
            await self._add(each, its_text)
        return new

    async def remove(self, name: str) -> None:
        """Remove a document. What others have of it goes on under their names."""
        for each, text in (await self._take_out(name)).items():
            await self._add(each, text)

    async def _add(self, name: str, text: str) -> list[str]:
        signature = self.signer.sign(Document(id=name, text=text, observed_at=self._now()))
        said = (await self.matcher.match(signature)).verdict if signature.n_bytes else None
        places, self.sources[name] = [(0, len(text))], set[str]()
        if said and said.novel and said.novel_spans is not UNSET and said.sources:
            told = said.novel.value + sum(source.characters for source in said.sources)
            if told >= ALMOST_ALL * said.characters:  # else a source is not told
                places = sent_places(text, said.novel_spans, SCHEME.text)
                self.sources[name] = {source.id for source in said.sources}
        found = [each for each in PASSAGE.finditer(text) if any(a < each.end() and each.start() < b for a, b in places)]
        new, first = [each[0] for each in found], self.next_key
        self.next_key += len(new)
        self.texts[name], self.keys[name] = text, list(range(first, self.next_key))
        self.passages |= dict(zip(self.keys[name], new, strict=True))
        if new:
            self.vectors.add(np.array(self.keys[name]), self.embed(new))
        return new

    async def _take_out(self, name: str) -> dict[str, str]:
        """Take out a document and all that rest on it, and return the texts of the latter."""
        texts, left = dict[str, str](), [name]
        while left:
            each = left.pop()
            if each in self.texts:
                texts[each] = self.texts.pop(each)
                for key in self.keys.pop(each):
                    self.vectors.remove(key)
                    del self.passages[key]
                removed_at_ms = int(self._now().timestamp() * 1000)
                await self.matcher.match_all([Arrival(f"default/{each}", None, removed_at_ms=removed_at_ms)])
                left += [other for other, sources in self.sources.items() if each in sources]
        texts.pop(name, None)
        return texts

    def _now(self) -> datetime:
        self.time += timedelta(milliseconds=1)
        return self.time
