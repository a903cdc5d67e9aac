"""Count the articles of a news agency as one source, however many papers print them.

Needs nearstream alone. An article belongs to the story of an earlier one if most of its text is known from that, so a
paper that shortens a report, or puts an introduction of its own above it, counts as another print of one source.
"""

from collections.abc import AsyncIterator, Iterable
from datetime import UTC, datetime, timedelta

from msgspec import UNSET

from nearstream import Document, HashKey, Matcher, Signer, local_store, preset

KEY = HashKey.public()  # a secret in production
SCHEME = preset("fine", KEY)
OWN_SHARE = 0.4  # of an article with more text of its own, which is a story of its own
BEGIN = datetime(2026, 1, 1, tzinfo=UTC)


async def stories(articles: Iterable[tuple[str, str]]) -> AsyncIterator[tuple[str, str]]:
    """Yield the id of each article with the id of the first article of its story. They come in the order of time."""
    signer, matcher, story = Signer(SCHEME, KEY), Matcher(local_store(), SCHEME, KEY), dict[str, str]()
    for minute, (name, text) in enumerate(articles):
        document = Document(id=name, text=text, observed_at=BEGIN + timedelta(minutes=minute))
        signature = signer.sign(document)
        verdict = (await matcher.match(signature)).verdict if signature.n_bytes else None
        story[name] = name
        if verdict and verdict.of and verdict.novel and verdict.sources is not UNSET:
            most = max(verdict.sources, key=lambda source: source.characters, default=None)
            if verdict.novel.value <= OWN_SHARE * verdict.characters:
                story[name] = story[most.id if most else verdict.of.id]
        yield name, story[name]


async def sources(articles: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    """Return the articles of each story, which count as one source."""
    found: dict[str, list[str]] = {}
    async for name, story in stories(articles):
        found.setdefault(story, []).append(name)
    return found
