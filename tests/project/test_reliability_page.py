"""Every fault and every bad input has a test with its id in the name."""

from dataclasses import asdict

from tests.fault.report import Report
from tests.support.reliability import BAD_INPUT, FAULTS, PAGE, SECURITY, holding_tests, page


def test_the_page_is_what_the_tests_say() -> None:
    assert PAGE.read_text() == page(), "run `python -m tests.support.reliability`"


def test_every_fault_id_has_a_test() -> None:
    assert _without_test(FAULTS) == []


def test_every_bad_input_id_has_a_test() -> None:
    assert _without_test(BAD_INPUT) == []


def test_every_point_of_security_has_a_test_or_names_the_fault_that_has() -> None:
    assert [SECURITY[one][-5:] for one in _without_test(SECURITY)] == [": F19", ": F18"]


def test_a_result_takes_the_place_of_an_earlier_one_of_its_test() -> None:
    run = asdict(Report("F99", documents=2000, restated_share=0.02, peak_memory_mb=99, throughput_share=0.4))
    first = {"test": "test_f99_a_fault[hard]", "outcome": "skipped (no right)", "report": None}
    again = first | {"outcome": "failed", "report": run | {"verdict": "1 missing"}}
    assert "| F99 hard (skipped (no right)) |  |  |  |\n" in page([first])
    assert "skipped (no right)" not in page([first, again])
    assert "| F99 hard (failed, 1 missing, 0.40 of the throughput) | 2,000 | 2.0% |  |\n" in page([first, again])
    assert "F99" not in page([first, first | {"outcome": "passed"}])


def _without_test(known: dict[str, str]) -> list[str]:
    held = holding_tests()
    return [one for one in known if one not in held]


def test_no_test_carries_an_id_that_is_not_listed() -> None:
    assert holding_tests().keys() <= {*FAULTS, *BAD_INPUT, *SECURITY}
