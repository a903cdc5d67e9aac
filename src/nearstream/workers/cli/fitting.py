"""Fit ids and details into a line of at most 120 columns."""

from nearstream.workers.operations.terminal import columns, printable

COLUMNS = 120
KIND_COLUMNS = 16
# Kept free of ids, for the first detail.
_DETAIL_COLUMNS = len("  [resemblance 0.90]")


def sentence(start: str, one: str, verb: str, other: str) -> str:
    """Return a line with two ids and a verb, with room for a detail."""
    one, other = _fitted(one, other, COLUMNS - columns(start) - columns(verb) - 2 - _DETAIL_COLUMNS)
    return f"{start}{one} {verb} {other}"


def with_details(text: str, details: list[str]) -> str:
    """Append the details that fit into the line, in brackets, the most important first.

    Each begins with its separator.
    """
    shown, room = "", COLUMNS - columns(text)
    for detail in details:
        longer = shown + (detail if shown else detail.removeprefix(", "))
        if columns(longer) + len("  []") <= room:
            shown = longer
    return f"{text}  [{shown}]" if shown else text


def cut(text: str, room: int) -> str:
    """Escape a text and cut out its middle, so that it takes at most `room` columns."""
    shown = _shown(text)
    if columns(shown) <= room:
        return shown
    start, end = "", ""
    for first, last in zip(shown, reversed(shown), strict=True):
        if columns(start + first + end) >= room:
            break
        start += first
        if columns(start + last + end) >= room:
            break
        end = last + end
    return f"{start}…{end}"


def _fitted(one: str, other: str, room: int) -> tuple[str, str]:
    """Cut two ids, so that they take at most `room` columns together.

    A short one leaves its room to the other.
    """
    short = min(columns(_shown(text)) for text in (one, other))
    most = max(room - short, room // 2)
    return cut(one, most), cut(other, most)


def _shown(text: str) -> str:
    """Escape a text, of which no more than both ends can be shown."""
    return printable(text if len(text) <= 2 * COLUMNS else f"{text[:COLUMNS]}…{text[-COLUMNS:]}")
