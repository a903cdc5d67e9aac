"""How a command ended, told to the shell."""

from enum import IntEnum


class Exit(IntEnum):
    """Exit codes, after sysexits.h where it has one."""

    OK = 0
    NO = 1
    USAGE = 2
    UNREADABLE = 65
    UNREACHABLE = 69
    UNWRITABLE = 74
    MISCONFIGURED = 78
    INTERRUPTED = 130
