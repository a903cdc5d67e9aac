"""What the commands about the index do: data on stdout, talk on stderr, an exit code back."""

import argparse
import asyncio
import sys

from workers.exits import Exit
from workers.rebuild import rebuild
from workers.redis_rebuild import RebuildRefusedError
from workers.settings import Settings


def rebuild_index(settings: Settings, options: argparse.Namespace) -> Exit:
    """A lost index, filled anew from the signatures."""
    try:
        rebuilt = asyncio.run(rebuild(settings, options.timeout, quiet=options.quiet))
    except RebuildRefusedError as error:
        sys.stderr.write(f"nearstream: {error}\n")
        return Exit.NO
    print(f"admitted {rebuilt.admitted}, removed {rebuilt.removed}, skipped {rebuilt.skipped}")
    return Exit.OK
