"""Write lines, JSON, messages and progress, none of which can control a terminal."""

import json
import os
import sys
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, TextIO, TypeVar

import msgspec

ItemT = TypeVar("ItemT")
ID_CHARACTERS = 128
PATH_CHARACTERS = 4200  # a path of Linux with a line number
_TERMINAL_SECONDS = 0.2
_PIPE_SECONDS = 10.0
_BAR_CHARACTERS = 20
_CELL_CHARACTERS = 2000
_SHORT_FIELDS = 5  # of a part that fits into one row
_NOT_SHOWN: tuple[object, ...] = (None, "", [], (), {})
_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")


def printable(text: str) -> str:
    r"""Return a text as one line that a terminal shows and does not obey.

    Controls (C0 and C1), line separators, bidirectional overrides and other characters that cannot be seen become
    `\uXXXX` as in JSON, so that JSON remains JSON.
    """
    return text if text.isprintable() else "".join(char if char.isprintable() else _escape(char) for char in text)


def escaped(text: str, max_characters: int = ID_CHARACTERS) -> str:
    """Return a text as one line for a terminal or a log, cut if it is longer."""
    return printable(text[:max_characters]) + ("…" if len(text) > max_characters else "")


def print_line(text: str, *, color: str = "", flush: bool = False) -> None:
    """Print one line to stdout, with its first word in an ANSI color on a terminal unless `NO_COLOR` is set."""
    line = printable(text)
    if color and _shows_color(sys.stdout):
        word, space, rest = line.partition(" ")
        line = f"\x1b[{color}m{word}\x1b[0m{space}{rest}"
    _write(line, flush=flush)


def print_json(value: object, *, flush: bool = False) -> None:
    """Print a value to stdout as one line of JSON, in which `printable` has escaped characters."""
    is_unicode = (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"
    text = json.dumps(msgspec.to_builtins(value, str_keys=True), ensure_ascii=not is_unicode, separators=(",", ":"))
    _write(printable(text), flush=flush)


def print_report(report: object, lines: Iterable[str], *, is_json: bool, flush: bool = False) -> None:
    """Print a report as one line of JSON, or as these lines."""
    if is_json:
        print_json(report, flush=flush)
    else:
        for line in lines:
            print_line(line, flush=flush)


def print_message(text: str) -> None:
    """Print one line to stderr."""
    sys.stderr.write(f"{printable(text)}\n")
    sys.stderr.flush()


def row(name: str, text: str) -> str:
    """Return a line with a name and a text in the column beside it."""
    return f"{name:<15}  {text}".rstrip()


def report_lines(report: object, indent: str = "") -> Iterator[str]:
    """Yield each known field of a report as a row, and below its name those of a part or of each of several."""
    for name, value in msgspec.to_builtins(report).items():
        title = indent + name.removesuffix("_ms").replace("_", " ")
        for each in value if isinstance(value, list | tuple) and value and isinstance(value[0], dict) else [value]:
            if name.endswith("_ms") and each is not None:
                yield row(title, utc_time(each))
            elif isinstance(each, dict) and not _is_short(each):
                yield title
                yield from report_lines(each, indent + "  ")
            elif each not in _NOT_SHOWN:
                yield row(title, _cell(each))


def _is_short(part: dict[str, object]) -> bool:
    return len(part) <= _SHORT_FIELDS and not any(isinstance(each, dict | list | tuple) for each in part.values())


def _cell(value: Any) -> str:  # noqa: ANN401 - as JSON has it
    """Return a value as people read it: a place as `start-end`, an estimate with its interval."""
    match value:
        case {"value": estimate, "low": low, "high": high}:
            return f"{estimate:.6g} ({low:.6g}-{high:.6g})"
        case dict():
            return ", ".join(f"{name} {_cell(each)}" for name, each in value.items() if each not in _NOT_SHOWN)
        case [int(), int()]:
            return f"{value[0]}-{value[1]}"
        case list() | tuple():
            return ", ".join(map(_cell, value))
        case bool():
            return "yes" if value else "no"
    return escaped(str(value), _CELL_CHARACTERS)


def in_bytes(count: float) -> str:
    """Return a number of bytes with a unit that fits its size."""
    unit = 0
    while count >= 1024 and unit < len(_UNITS) - 1:
        count, unit = count / 1024, unit + 1
    return f"{count:.0f} {_UNITS[unit]}" if not unit else f"{count:.1f} {_UNITS[unit]}"


def utc_time(milliseconds: int, timespec: str = "seconds") -> str:
    """Return a time in ISO 8601, in UTC. One that no calendar holds is returned with its unit."""
    try:
        return datetime.fromtimestamp(milliseconds / 1000, UTC).isoformat(timespec=timespec)
    except (ValueError, OverflowError, OSError):
        return f"{milliseconds} ms"


def _escape(char: str) -> str:
    units = char.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at : at + 2].hex()}" for at in range(0, len(units), 2))


def _write(line: str, *, flush: bool) -> None:
    encoding = sys.stdout.encoding or "utf-8"
    sys.stdout.write(line.encode(encoding, "backslashreplace").decode(encoding) + "\n")
    if flush:
        sys.stdout.flush()


def _shows_color(stream: TextIO) -> bool:
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


@dataclass
class Progress:
    """A progress line on stderr for a long operation.

    On a terminal it is rewritten, at most five times a second. Elsewhere there is a new line every 10 s.
    """

    what: str  # what is done, in the past tense
    total: int = 0  # Number of items, or of the bytes that `reach` counts. 0: not known.
    quiet: bool = False  # write nothing
    stream: TextIO = field(default_factory=lambda: sys.stderr)  # where the line is written
    done: int = 0  # number of items done so far
    place: int | None = None  # How many bytes were read. None: the total counts items.
    _began: float = field(default_factory=time.monotonic)
    _written: float = field(default_factory=time.monotonic)

    def step(self, count: int = 1) -> None:
        """Count `count` more items as done."""
        self.done += count
        now = time.monotonic()
        pause = _TERMINAL_SECONDS if self.stream.isatty() else _PIPE_SECONDS
        if not self.quiet and now - self._written >= pause:
            self._written = now
            self._write("\r" if self.stream.isatty() else "", "" if self.stream.isatty() else "\n")

    def reach(self, items: Iterable[ItemT]) -> Iterator[ItemT]:
        """Yield items, and note how many bytes were read up to each."""
        for item in items:
            self.place = getattr(item, "place", 0) or self.place
            yield item

    def end(self) -> None:
        """Write the last count, and end the line."""
        if not self.quiet:
            self._write("\r" if self.stream.isatty() else "", "\n")

    def _write(self, before: str, after: str) -> None:
        seconds = max(time.monotonic() - self._began, 1e-9)
        rate = self.done / seconds
        text = f"{self.what}: {self.done}"
        at = self.done if self.place is None else self.place
        if self.total:
            ratio = min(at / self.total, 1.0)
            bar = "#" * round(_BAR_CHARACTERS * ratio)
            text = f"{self.what} [{bar:.<{_BAR_CHARACTERS}}] {self.done}"
            text += f" of {self.total}" if self.place is None else f", {in_bytes(at)} of {in_bytes(self.total)}"
            text += f" ({100 * ratio:.0f} %), {seconds / ratio - seconds if ratio else 0:.0f} s left"
        self.stream.write(f"{before}{text}, {rate:.0f}/s{after}")
        self.stream.flush()
