"""Made-up entries of buckets."""

from random import Random

from nearstream.streams.store.limits import IndexLimits
from nearstream.streams.store.messages import Entry
from nearstream.streams.store.store import Shape
from nearstream.workers.redis.server.layout import StoreLayout, new_layout


def made_up(draw: Random) -> tuple[StoreLayout, list[Entry]]:
    """Return a layout, and entries that share some of their keys."""
    limits = IndexLimits(documents=draw.choice([1, 1_000, 10**7]))
    keys = [bytes([draw.choice(b"xlba")]) + draw.randbytes(8) for _ in range(draw.choice([3, 300, 3_000]))]
    counts = draw.choices([0, 1, 40, 700], k=draw.randint(1, 6))
    batch = [Entry(draw.randrange(2**40), draw.randrange(2**40), b"".join(draw.choices(keys, k=k))) for k in counts]
    return new_layout(b"{made up:", Shape(), limits, bytes(8)), batch
