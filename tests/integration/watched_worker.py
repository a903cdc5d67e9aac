"""A worker that logs the names it resolves and the addresses to which it connects."""

import sys

from nearstream.workers.cli.main import main

_NOTED = ("socket.connect", "socket.getaddrinfo")


def note(event: str, arguments: tuple[object, ...]) -> None:
    """Log a network event, as an audit hook that Python calls before it uses a socket."""
    if event in _NOTED:
        place = arguments[1] if event == "socket.connect" else arguments[:2]
        sys.stderr.write(f"NETWORK {place}\n")


sys.addaudithook(note)
sys.exit(main(["worker", *sys.argv[1:]]))
