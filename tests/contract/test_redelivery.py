"""Records that are delivered again, and calls whose answers are lost, in memory and on Redis."""

from collections.abc import Sequence
from itertools import combinations
from random import Random

import pytest

from nearstream.schemas.documents.evidence import event_id
from nearstream.schemas.documents.signature import Signature
from nearstream.streams.estimates.comparing import estimate
from nearstream.streams.matching.arriving import Arrival
from nearstream.streams.matching.matcher import Matcher
from nearstream.streams.matching.telling import Matched
from nearstream.streams.relations.describe import document_state
from nearstream.streams.relations.verdict import relate
from nearstream.streams.store.limits import IndexLimits
from nearstream.streams.store.store import Store
from tests.support.families import arrivals, lines, pair_events, real_traffic
from tests.support.matching import KEY, SCHEME
from tests.support.stores import Make, Shaky, through, until_done

FOR_EVER = IndexLimits(retention_seconds=0)


def matcher(store: Store) -> Matcher:
    return Matcher(store, SCHEME, KEY)


def shaken(store: Store, random: Random, most: int) -> Store:
    """Return a store that loses some answers, up to a number."""
    return through(store, lambda transport: Shaky(transport, random, 0.05, most))


@pytest.mark.parametrize("seed", range(2))
async def test_a_record_that_is_delivered_again_is_told_byte_for_byte(make: Make, seed: int) -> None:
    """Answers get lost after the store has done what was asked, and any record is delivered again.

    Then it may also tell of a document that came later and met no member of its family.
    """
    random = Random(seed)
    records = arrivals([each for each in real_traffic(random, 50, 18) if isinstance(each, Signature)])
    true = true_ids(records)
    one, first, done = matcher(shaken(await make(FOR_EVER), random, 60)), list[Matched](), 0
    while done < len(records):
        part = records[done : done + random.choice((1, 1, 2, 4, 8, 16))]
        first += await until_done(lambda part=part: one.match_all(part))
        done += len(part)
        for at in random.sample(range(done), min(5, done)):
            (again,) = await until_done(lambda at=at: one.match_all([records[at]]))
            assert lines(again)[: len(lines(first[at]))] == lines(first[at])
            assert {event.event_id for event in pair_events([again])} <= true


def true_ids(records: Sequence[Arrival]) -> set[str]:
    """Return the ids of the events about all related pairs, whether or not an index would find them."""
    kept = [SCHEME.kept(each.signature) for each in records if each.signature is not None]
    pairs = combinations(sorted(kept, key=lambda each: each.order), 2)
    return {
        event_id(
            relate(newer, older, estimate(newer, older)).relation, *map(document_state, (older, newer)), SCHEME.name
        )
        for older, newer in pairs
    }
