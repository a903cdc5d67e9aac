"""The commands of the command line, as the parser declares them."""

import argparse
from collections.abc import Iterator

from nearstream.workers.cli.parser import _declare, create_parser


def parsers(
    parser: argparse.ArgumentParser, path: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], argparse.ArgumentParser]]:
    """Yield the parser of each command, with the command as typed."""
    if path:
        yield path, parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, command in action.choices.items():
                if not path:
                    _declare(command, name)
                yield from parsers(command, (*path, name))


PARSERS = dict(parsers(create_parser()))
# The function of each command, None for a group of commands.
COMMANDS = {path: parser.get_default("command") for path, parser in PARSERS.items()}
