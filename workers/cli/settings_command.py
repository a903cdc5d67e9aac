"""Show the settings."""

import argparse

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
