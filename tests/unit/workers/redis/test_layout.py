"""Where the layout puts states."""

from collections import Counter

from redis.crc import key_slot

from nearstream.workers.redis.server.layout import tag_of


def test_slots_are_spread_evenly_over_the_servers_of_a_cluster() -> None:
    for slots, servers in ((2, 2), (4, 2), (4, 4), (16, 4), (24, 3), (64, 16)):
        for name in range(20):
            tags = [tag_of(b"{name %d:" % name, slot) for slot in range(slots)]
            counts = Counter(key_slot(tag[1:-1]) * servers // 16_384 for tag in tags)
            assert max(counts.values()) <= slots // servers + 1
