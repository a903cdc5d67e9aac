"""Every fault and every bad input has a test with its id in the name."""

from dataclasses import asdict

from tests.fault.report import Report
from tests.support.reliability import PAGE, holding_tests, listed, page


def test_the_page_is_what_the_tests_say() -> None:
    assert PAGE.read_text() == page(), "run `python -m tests.support.reliability`"


def test_every_listed_id_has_a_test_or_names_the_fault_that_has_and_every_test_is_listed() -> None:
    known, held = listed(), holding_tests()
    assert [what[-5:] for one, what in known.items() if one not in held] == [": F19", ": F18"]
    assert held.keys() - known.keys() == {f"B{number:02}" for number in range(1, 66)}
    assert len(known) >= 66


def test_a_result_takes_the_place_of_an_earlier_one_of_its_test() -> None:
    run = asdict(Report("F99", documents=2000, restated_share=0.02, peak_memory_mb=99, throughput_share=0.4))
    first = {"test": "test_f99_a_fault[hard]", "outcome": "skipped (no right)", "report": None}
    again = first | {"outcome": "failed", "report": run | {"verdict": "1 missing"}}
    assert "| F99 hard (skipped (no right)) |  |  |  |\n" in page([first])
    assert "skipped (no right)" not in page([first, again])
    assert "| F99 hard (failed, 1 missing, 0.40 of the throughput) | 2,000 | 2.0% |  |\n" in page([first, again])
    assert "F99" not in page([first, first | {"outcome": "passed"}])
