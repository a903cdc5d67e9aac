"""Events and progress as a person reads them."""

import io
import unicodedata
from pathlib import Path

import msgspec
import pytest

from schemas.codec import decode_event
from schemas.events import Event, Retraction, Version
from workers.show import ID_CHARACTERS, Progress, escaped, line

EXAMPLES = Path(__file__).parents[2] / "schemas" / "examples"
KINDS = ("exact_duplicate", "near_duplicate", "containment", "version", "rearranged", "overlap", "retraction")
FORGED = [
    "a\nnear_duplicate   b ~ c",
    "a\r\x1b[2K",
    "\x1b[31mred\x1b[0m",
    "\x1b]0;title\x07",
    "\x9b31m",
    "a\u2028b",
    "a\u2029b",
    "a\x85b",
    "\u202eevil",
    "\u2066evil\u2069",
    "\u200fa\u200e",
    "a\x00b\x08\x7f",
    "\ud800",
    "\U000e0041",
    "\ufeffa\u200b",
]


def example(kind: str) -> Event:
    return decode_event((EXAMPLES / f"{kind}.json").read_bytes())


def named(kind: str, document_id: str) -> Event:
    """The example, both of its documents under this id."""
    event = example(kind)
    if isinstance(event, Retraction):
        return msgspec.structs.replace(event, document_id=document_id)
    newer, older = (msgspec.structs.replace(each, id=document_id) for each in (event.newer, event.older))
    return msgspec.structs.replace(event, newer=newer, older=older)


def dangerous(text: str) -> set[str]:
    """Characters that move a cursor, break a line or turn its direction."""
    return {char for char in text if unicodedata.category(char) in ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")}


@pytest.mark.parametrize("document_id", FORGED)
def test_an_escaped_id_is_one_line_without_commands(document_id: str) -> None:
    assert not dangerous(escaped(document_id))
    assert "\\u" in escaped(document_id)


@pytest.mark.parametrize("document_id", FORGED)
@pytest.mark.parametrize("kind", KINDS)
def test_s16_a_log_line_cannot_be_forged(kind: str, document_id: str) -> None:
    text = line(named(kind, document_id))
    assert not dangerous(text)
    assert text.splitlines() == [text]


def test_a_readable_id_is_shown_as_it_is() -> None:
    for document_id in ("p-0312", "<77@d.example>", "Wasserstände/日本語 №7", "https://a.example/x?a=1"):
        assert escaped(document_id) == document_id


def test_s16_a_long_id_is_cut() -> None:
    assert escaped("x" * ID_CHARACTERS) == "x" * ID_CHARACTERS
    assert escaped("x" * (ID_CHARACTERS + 1)) == "x" * ID_CHARACTERS + "…"


@pytest.mark.parametrize(
    ("kind", "starts"),
    [
        ("exact_duplicate", "exact_duplicate  b-2210 equals a-1041  [resemblance 1.00"),
        ("near_duplicate", "near_duplicate   c-7730 ~ a-1041  [resemblance 0.90 (0.83-0.94)"),
        ("containment", "containment      <77@d.example> lies inside <12@a.example> at 8208-9286  ["),
        ("version", "version          p-0388 is a new version of p-0312, same lineage  ["),
        ("rearranged", "rearranged       e-3316 ~ a-1041  ["),
        ("overlap", "overlap          f-0420 ~ a-1041  ["),
        ("retraction", "removed          a-1041: events that name it are void"),
    ],
)
def test_a_line_starts_with_the_relation_and_says_who(kind: str, starts: str) -> None:
    assert line(example(kind)).startswith(starts)


def test_a_line_says_why() -> None:
    assert line(example("version")).endswith(
        "[resemblance 0.81 (0.74-0.87), newer in older 0.90, older in newer 0.95, distance 623 characters, +496 -126, "
        "7 bands, 53 anchors shared]"
    )


def test_a_containment_says_which_one_holds_the_other() -> None:
    event = msgspec.structs.replace(example("containment"), inner="older")
    assert "<77@d.example> holds <12@a.example> at 8208-9286" in line(event)


def test_an_unchanged_recrawl_is_told_as_such() -> None:
    event = msgspec.structs.replace(example("exact_duplicate"), same_lineage=True)
    assert "equals a-1041, same lineage: unchanged" in line(event)


def test_weak_numbers_are_told() -> None:
    event = msgspec.structs.replace(example("overlap"), low_confidence=("few_symbols", "near_threshold"))
    assert line(event).endswith("weak: few_symbols, weak: near_threshold]")


def test_a_reason_from_a_foreign_event_cannot_forge_a_line() -> None:
    event = msgspec.structs.replace(example("overlap"), low_confidence=("x\nremoved          victim",))
    assert "\n" not in line(event)


def test_an_event_of_a_scheme_without_ld_signature_is_told_without_its_numbers() -> None:
    event = example("version")
    assert isinstance(event, Version)
    bare = {name: msgspec.UNSET for name in ("overlap", "containment", "distance", "distance_ratio", "spans")}
    evidence = msgspec.structs.replace(event.evidence, **bare)
    text = line(msgspec.structs.replace(event, evidence=evidence, added=msgspec.UNSET, removed=msgspec.UNSET))
    assert "distance" not in text
    assert text.endswith("[resemblance 0.81 (0.74-0.87), 7 bands, 53 anchors shared]")


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


def test_progress_ends_with_its_count() -> None:
    stream = io.StringIO()
    progress = Progress("signing", 4, stream=stream)
    for _ in range(3):
        progress.step()
    progress.end()
    assert stream.getvalue().startswith("signing [###############.....] 3 of 4 (75 %), ")
    assert stream.getvalue().endswith("/s\n")


def test_progress_without_a_total_has_no_share() -> None:
    stream = io.StringIO()
    progress = Progress("signing", stream=stream)
    progress.step(5)
    progress.end()
    assert stream.getvalue().startswith("signing: 5, ")


def test_progress_on_a_terminal_rewrites_its_line() -> None:
    stream = Terminal()
    progress = Progress("signing", 2, stream=stream)
    progress.step()
    progress.end()
    assert stream.getvalue().startswith("\rsigning [##########..........] 1 of 2 (50 %)")


def test_many_steps_at_once_make_one_line() -> None:
    stream = io.StringIO()
    progress = Progress("signing", 10_000, stream=stream)
    for _ in range(10_000):
        progress.step()
    progress.end()
    assert stream.getvalue().count("\n") == 1


def test_quiet_progress_says_nothing() -> None:
    stream = io.StringIO()
    progress = Progress("signing", 2, quiet=True, stream=stream)
    progress.step(2)
    progress.end()
    assert stream.getvalue() == ""
