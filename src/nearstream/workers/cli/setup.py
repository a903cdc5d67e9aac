"""Check a deployment, and print settings."""

import argparse

from nearstream.workers.cli.arguments import add_json, add_timeout, declare
from nearstream.workers.config.exit_codes import Exit
from nearstream.workers.config.settings import Settings, table
from nearstream.workers.operations.terminal import print_report


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
