"""The lag rises, falls or rests over a minute."""

from nearstream.workers.http.live.sources import Trend
from nearstream.workers.kafka.lag import PartitionLag


def test_a_trend_compares_with_a_minute_ago() -> None:
    for waiting, trend in [
        ([0, 0], "none"),
        ([100, 120], "growing"),
        ([100, 80], "falling"),
        ([100, 105], "steady"),
        ([500, *[100] * 13], "steady"),
        ([0, 100], "growing"),
    ]:
        measured = Trend()
        for place, records in enumerate(waiting):
            lag = measured.add([PartitionLag("d", 0, 0, 0, records, 9.0 if records else None)], 5.0 * place)
        assert (lag.trend, lag.records) == (trend, waiting[-1])


def test_a_batch_in_work_is_no_lag() -> None:
    measured = Trend()
    measured.add([], 0.0)
    assert measured.add([PartitionLag("d", 0, 0, 0, 50, 0.3)], 5.0).trend == "none"
