"""Texts that try to forge lines of a terminal or a log."""

import unicodedata

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
    "".join(map(chr, (0x061C, *range(0x202A, 0x202F), *range(0x2066, 0x206A)))),
    "".join(map(chr, (*range(0x20), *range(0x7F, 0xA0)))),
    "\ufeffa\u200b",
]


def dangerous(text: str) -> set[str]:
    """Characters that move a cursor, break a line or turn its direction."""
    return {char for char in text if unicodedata.category(char) in ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")}
