"""Send the documents of files to Kafka."""

import argparse
import asyncio

from nearstream.workers.config.exit_codes import Exit
from nearstream.workers.config.settings import Settings
from nearstream.workers.operations.produce import produce_files, produce_signatures
from nearstream.workers.operations.terminal import print_message
from nearstream.workers.pipeline.deployment import Deployment


def send_documents(settings: Settings, options: argparse.Namespace) -> Exit:
    """Send the documents of files to their topic, or the signatures that files hold to theirs."""
    produce = produce_signatures if options.signatures else produce_files
    produced = asyncio.run(produce(Deployment.of(settings), options.paths, options.timeout, quiet=options.quiet))
    not_whole = "".join(f", {number} {reason}" for reason, number in produced.incomplete.most_common())
    print_message(f"sent {produced.sent}, refused {produced.refused}{not_whole}")
    if produced.passed_over:
        print_message(f"passed over {', '.join(f'{n} {reason}' for reason, n in produced.passed_over.most_common())}")
    return Exit.UNREADABLE if produced.refused else Exit.OK
