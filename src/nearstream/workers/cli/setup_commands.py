"""Print settings and completions."""

import argparse

import shtab

from nearstream.workers.cli.parser import create_parser
from nearstream.workers.config.exit_codes import Exit
from nearstream.workers.config.settings import Settings, table
from nearstream.workers.operations.terminal import print_json, print_line


def show_settings(settings: Settings, options: argparse.Namespace) -> Exit:
    """Print the variable, value, meaning and default of every setting."""
    for variable, value, default, meaning in table(settings):
        if options.json:
            print_json({"variable": variable, "value": value, "default": default, "help": meaning})
        else:
            print_line(f"{variable:<36} {value:<36} {meaning}" + (f" (default {default})" if value != default else ""))
    return Exit.OK


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
