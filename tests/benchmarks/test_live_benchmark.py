"""The benchmark of the live page counts what a real browser reads."""

from benchmarks.live.__main__ import server_alone, with_a_page


async def test_a_page_reads_all_and_its_rows_are_timed() -> None:
    figures = await with_a_page(100.0, 3.0)
    assert figures["received"] == figures["sent"] == 300
    assert figures["rows_timed"] > 0
    assert 0 <= figures["latency_ms"]["p50"] <= figures["latency_ms"]["p99"] <= figures["latency_ms"]["max"]
    assert figures["server_cpu"] > 0
    assert figures["browser_cpu"] > 0


async def test_a_reader_that_never_reads_holds_nothing_up() -> None:
    assert await server_alone(200.0, 2.0, with_a_stuck_reader=True) >= 0
