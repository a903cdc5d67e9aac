"""Report what of mail was read in part only."""

from collections import Counter
from collections.abc import Iterable, Iterator

from nearstream.workers.operations.terminal import PATH_CHARACTERS, escaped, print_message
from nearstream.workers.pipeline.file_source import Item, Refused

_BROKEN = frozenset({"parse_fallback", "truncated"})


def reported(items: Iterable[Item | Refused], incomplete: Counter[str]) -> Iterator[Item | Refused]:
    """Yield the items, and report on stderr where a broken message is.

    Args:
        items: What was read.
        incomplete: Counts, by reason, of documents that were read in part. They are increased.
    """
    for item in items:
        if isinstance(item, Item):
            incomplete.update(item.degraded)
            broken = _BROKEN.intersection(item.degraded)
            if broken:
                print_message(f"read in part {escaped(item.source, PATH_CHARACTERS)}: {', '.join(sorted(broken))}")
        yield item
