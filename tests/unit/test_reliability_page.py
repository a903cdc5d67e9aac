"""Every fault, every bad input, has a test that carries its id."""

from tests.reliability import BAD_INPUT, FAULTS, LATER, PAGE, SECURITY, holding_tests, page


def test_the_page_is_what_the_tests_say() -> None:
    assert PAGE.read_text() == page(), "run `python -m tests.reliability`"


def test_every_fault_id_has_a_test() -> None:
    assert _without_test(FAULTS) == []


def test_every_bad_input_id_has_a_test() -> None:
    assert _without_test(BAD_INPUT) == []


def _without_test(known: dict[str, str]) -> list[str]:
    held = holding_tests()
    return [one for one, what in known.items() if one not in held and LATER not in what]


def test_no_test_carries_an_id_that_is_not_listed() -> None:
    assert holding_tests().keys() <= {*FAULTS, *BAD_INPUT, *SECURITY}
