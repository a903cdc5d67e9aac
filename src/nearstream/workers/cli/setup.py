"""Check a deployment, print settings and completions."""

import argparse

import shtab

from nearstream.workers.cli.arguments import add_json, add_timeout, declare
from nearstream.workers.cli.parser import create_whole_parser
from nearstream.workers.config.exit_codes import Exit
from nearstream.workers.config.settings import Settings, table
from nearstream.workers.operations.terminal import print_report

SHELLS = ("bash", "zsh", "fish")
_COMPLETED_AS = {"paths": shtab.FILE, "a": shtab.FILE, "b": shtab.FILE}


def add_doctor(parser: argparse.ArgumentParser) -> None:
    """Declare `nearstream doctor`."""
    declare(parser, check_deployment, example="nearstream doctor --timeout 2", no="a check failed")
    add_json(parser, "one JSON object per line")
    add_timeout(parser, 5.0)


def check_deployment(settings: Settings, options: argparse.Namespace) -> Exit:
    """Print each check of Kafka, Redis, topics and scheme, with a remedy where one is needed."""
    # Imported on use, because these load numpy and the clients.
    import asyncio

    from nearstream.workers.operations.doctor import examine
    from nearstream.workers.pipeline.deployment import Deployment

    async def run() -> bool:
        passed = True
        async for check in examine(Deployment.of(settings), options.timeout):
            line = f"{check.grade:<5} {check.subject:<9} {check.detail}"
            print_report(check, [line], is_json=options.json, flush=True)
            passed &= check.grade != "FAIL"
        return passed

    return Exit.OK if asyncio.run(run()) else Exit.NO


def add_settings(parser: argparse.ArgumentParser) -> None:
    """Declare `nearstream settings`."""
    declare(parser, show_settings, example="nearstream settings --json")
    add_json(parser, "one JSON object per line")


def show_settings(settings: Settings, options: argparse.Namespace) -> Exit:
    """Print the variable, value, meaning and default of every setting."""
    for variable, value, default, meaning in table(settings):
        fields = {"variable": variable, "value": value, "default": default, "help": meaning}
        line = f"{variable:<36} {value:<36} {meaning}" + (f" (default {default})" if value != default else "")
        print_report(fields, [line], is_json=options.json)
    return Exit.OK


def add_completion(parser: argparse.ArgumentParser) -> None:
    """Declare `nearstream completion`."""
    declare(parser, print_completion, example="nearstream completion bash")
    parser.add_argument("shell", choices=SHELLS, help="shell of the script")


def print_completion(settings: Settings, options: argparse.Namespace) -> Exit:
    """Print a script that completes commands, options, their choices and paths."""
    parser = create_whole_parser()
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
