"""Permanent redirects that a crawl has met, until the page that they lead to comes."""

from urllib.parse import urljoin

from nearstream.streams.ingest.defaults import name_of_page

PERMANENT = frozenset({301, 308})

_TARGETS_MAX = 10_000  # about 300 bytes each
_SOURCES_MAX = 8  # of one target


class Redirects:
    """The URLs that redirect to pages which have not come yet."""

    def __init__(self) -> None:
        """Begin with none."""
        self._sources: dict[str, list[str]] = {}

    def add(self, url: str, location: str) -> None:
        """Remember a redirect, in place of the oldest one if there are too many.

        Redirects to this URL lead to the new target from now on.

        Args:
            url: What was asked for.
            location: Where the answer leads, which may be relative to `url`.
        """
        try:
            name, target = name_of_page(url), name_of_page(urljoin(url, location))
        except ValueError:
            return
        if name == target:
            return
        sources = [*self._sources.pop(target, []), *self._sources.pop(name, []), url]
        self._sources[target] = list(dict.fromkeys(sources))[:_SOURCES_MAX]
        if len(self._sources) > _TARGETS_MAX:
            del self._sources[next(iter(self._sources))]

    def take(self, url: str) -> list[str]:
        """Return the URLs that redirect to a page, at most 8, and forget them."""
        return self._sources.pop(name_of_page(url), [])
