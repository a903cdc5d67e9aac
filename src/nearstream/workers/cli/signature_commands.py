"""Sign documents."""

import argparse
from collections import Counter

from nearstream.schemas.topics.codec import encode_signature_line
from nearstream.workers.config.exit_codes import Exit
from nearstream.workers.config.settings import Settings
from nearstream.workers.files.source import Refused
from nearstream.workers.operations.reading import report
from nearstream.workers.operations.signatures import anonymous, sign_files
from nearstream.workers.operations.terminal import PATH_CHARACTERS, escaped, print_line, print_message
from nearstream.workers.pipeline.deployment import Deployment

_PUBLIC_KEY = "nearstream: NEARSTREAM_HASH_KEY is not set: whoever sees these signatures can test guesses of the texts"


def write_signatures(settings: Settings, options: argparse.Namespace) -> Exit:
    """Print the signature of each document of files, one in each line."""
    if not settings.hash_key:
        print_message(_PUBLIC_KEY)
    refused = False
    for item in sign_files(Deployment.of(settings), options.paths):
        if isinstance(item, Refused):
            refused = True
            print_message(f"refused {escaped(item.source, PATH_CHARACTERS)}: {item.reason}")
        else:
            report(item.source, item.degraded, Counter())
            signature = anonymous(item.signature) if options.anonymous else item.signature
            print_line(encode_signature_line(signature).decode())
    return Exit.UNREADABLE if refused else Exit.OK
