"""Print the completion script of a shell."""

import argparse

import shtab

from nearstream.workers.cli.parser import create_parser
from nearstream.workers.config.exit_codes import Exit
from nearstream.workers.config.settings import Settings

_COMPLETED_AS = {"paths": shtab.FILE, "a": shtab.FILE, "b": shtab.FILE, "folder": shtab.DIRECTORY}


def print_completion(settings: Settings, options: argparse.Namespace) -> Exit:
    """Print a script that completes commands, options, their choices and paths."""
    parser = create_parser()
    _mark_paths(parser)
    print(shtab.complete(parser, options.shell))
    return Exit.OK


def _mark_paths(parser: argparse.ArgumentParser) -> None:
    """Mark the arguments that name a file or a folder, for shtab."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for command in action.choices.values():
                _mark_paths(command)
        elif action.dest in _COMPLETED_AS:
            action.complete = _COMPLETED_AS[action.dest]  # type: ignore[attr-defined] # shtab looks for it
