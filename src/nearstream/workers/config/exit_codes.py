"""Exit codes of all commands, and the error that chooses one."""

from enum import IntEnum


class Exit(IntEnum):
    """The exit code of a command, from sysexits.h where possible."""

    OK = 0
    NO = 1
    USAGE = 2
    UNREADABLE = 65
    UNREACHABLE = 69
    UNWRITABLE = 74
    MISCONFIGURED = 78
    INTERRUPTED = 130


class RefusalError(Exception):
    """What a command was asked for is refused. The message is its answer."""

    def __init__(self, message: str, exit_code: Exit = Exit.NO) -> None:
        super().__init__(message)
        self.exit_code = exit_code
