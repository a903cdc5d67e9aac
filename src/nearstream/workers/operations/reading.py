"""Report what of mail and web pages was read in part only."""

from collections import Counter
from collections.abc import Iterable, Iterator

from nearstream.workers.files.source import Item, Refused
from nearstream.workers.operations.terminal import PATH_CHARACTERS, escaped, print_message

_BROKEN = frozenset({"parse_fallback", "truncated"})


def reported(items: Iterable[Item | Refused], incomplete: Counter[str]) -> Iterator[Item | Refused]:
    """Yield the items, and report on stderr where a broken message is.

    Args:
        items: What was read.
        incomplete: Counts, by reason, of documents that were read in part. They are increased.
    """
    for item in items:
        if isinstance(item, Item):
            report(item.source, item.degraded, incomplete)
        yield item


def report(source: str, degraded: Iterable[str], incomplete: Counter[str]) -> None:
    """Count what was incomplete about a document, and report on stderr where a broken one is."""
    reasons = sorted(degraded)
    incomplete.update(reasons)
    broken = [reason for reason in reasons if reason in _BROKEN]
    if broken:
        print_message(f"read in part {escaped(source, PATH_CHARACTERS)}: {', '.join(broken)}")
