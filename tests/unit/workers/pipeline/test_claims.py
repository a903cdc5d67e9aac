"""How long a worker waits for more records before it takes a batch."""

from nearstream.workers.pipeline.claims import LINGER_MS, Claims

MOST = 32
ONE, OTHER = ("in", 0), ("in", 1)


def after(*sizes: int) -> Claims:
    """Return the claims after batches of these sizes, of which the last one is in work."""
    claims = Claims()
    for size in sizes:
        claims.release([ONE])
        claims.claim([ONE], size, MOST)
    return claims


def test_records_that_come_one_by_one_are_not_waited_for() -> None:
    assert after(1, 1, 2, 1).linger_ms == 0


def test_the_broker_lingers_longer_the_longer_several_records_come_together() -> None:
    waits = [after(*[5] * count).linger_ms for count in range(7)]
    assert waits == [0, 2, 4, 8, 16, LINGER_MS, LINGER_MS]


def test_the_broker_stops_to_linger_when_records_come_one_by_one_again() -> None:
    busy = [5] * 6
    assert [after(*busy, *[1] * count).linger_ms for count in range(6)] == [LINGER_MS, 10, 5, 2, 0, 0]


def test_batches_of_two_change_nothing() -> None:
    assert after(5, 5, 2, 2).linger_ms == after(5, 5).linger_ms


def test_records_that_come_together_are_shared_out_unless_they_fill_batches() -> None:
    assert [after(*sizes).most(MOST) for sizes in ((1,), (5,), (5, 12), (MOST,), (5, MOST))] == [32, 12, 12, 32, 32]
    assert after(5).most(1) == 1


def test_claimed_partitions_are_free_again_when_their_batch_is_done() -> None:
    claims = after(5)
    claims.claim([OTHER], 5, MOST)
    claims.release([ONE])
    assert claims.partitions == {OTHER}
