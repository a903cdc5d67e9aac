"""What is written to a terminal: nothing that it would obey, whatever is printed."""

import io
import json
import sys
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nearstream.schemas.documents.record import ConsumerRecord
from nearstream.workers.files.source import Item
from nearstream.workers.operations.terminal import (
    ID_CHARACTERS,
    Progress,
    escaped,
    print_json,
    print_line,
    printable,
)
from tests.support.forged import dangerous

ROOT = Path(__file__).parents[4]
SAME = "one two three four five six seven eight nine ten eleven twelve"


def test_s16_a_readable_id_is_shown_as_it_is_up_to_its_length() -> None:
    for text in ("p-0312", "<77@d.example>", "Wasserstände/日本語 №7", "https://a.example/x?a=1", "x" * ID_CHARACTERS):
        assert escaped(text) == text
    assert escaped("x" * (ID_CHARACTERS + 1)) == "x" * ID_CHARACTERS + "…"


def test_s16_every_character_of_unicode_that_a_terminal_obeys_is_escaped() -> None:
    unassigned = range(0x40000, 0xE0000)
    for start in (*range(0, unassigned[0] + 1, 4096), *range(unassigned[-1] + 1, sys.maxunicode + 1, 4096)):
        text = "".join(map(chr, range(start, start + 4096)))
        shown = "".join(set(printable(text)))
        assert not dangerous(shown)
        assert {char for char in text if unicodedata.category(char)[0] in "LMNPS"} <= set(shown)


@given(st.text(st.characters(exclude_categories=[])))
def test_printable_json_holds_what_it_held(text: str) -> None:
    assert json.loads(printable(json.dumps(text, ensure_ascii=False))) == text


def test_what_an_output_cannot_encode_is_escaped(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "Wasserstände 日本語 \U0001f600"
    for encoding in ("ascii", "latin-1", "utf-8"):
        raw = io.BytesIO()
        monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding))
        print_line(text)
        print_json(text, flush=True)
        line, as_json = raw.getvalue().decode(encoding).splitlines()
        assert json.loads(as_json) == text
        assert (line == text) is (encoding == "utf-8")


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


def test_who_wants_no_color_gets_none(monkeypatch: pytest.MonkeyPatch) -> None:
    for environment, is_colored in (({"NO_COLOR": ""}, True), ({"NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False)):
        stream = Terminal()
        monkeypatch.setattr(sys, "stdout", stream)
        for name, value in {"TERM": "xterm", "NO_COLOR": "", **environment}.items():
            monkeypatch.setenv(name, value)
        print_line("one two", color="32")
        assert stream.getvalue() == ("\x1b[32mone\x1b[0m two\n" if is_colored else "one two\n")


def test_progress_ends_with_its_count() -> None:
    stream = io.StringIO()
    progress = Progress("signing", 4, stream=stream)
    for _ in range(3):
        progress.step()
    progress.end()
    assert stream.getvalue().startswith("signing [###############.....] 3 of 4 (75 %), ")
    assert stream.getvalue().endswith("/s\n")
    progress = Progress("signing", 4096, stream=stream, place=0)
    for _ in progress.reach([Item("a", ConsumerRecord("in", 0, 0, 0, None, b"", []), place=1024)]):
        progress.step()
    progress.end()
    assert "signing [#####...............] 1, 1.0 KiB of 4.0 KiB (25 %), " in stream.getvalue()
    for total, quiet, start in (
        (0, False, "\rsigning: 5, "),
        (10, False, "\rsigning [##########..........] 5 of 10"),
        (9, True, ""),
    ):
        stream = Terminal()
        progress = Progress("signing", total, quiet, stream)
        progress.step(5)
        progress.end()
        assert stream.getvalue()[: len(start) or None] == start
