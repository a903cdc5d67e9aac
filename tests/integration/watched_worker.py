"""A worker that notes on stderr each name that it looks up, each address that it connects to."""

import sys

from workers.cli import main

_NOTED = ("socket.connect", "socket.getaddrinfo")


def note(event: str, arguments: tuple[object, ...]) -> None:
    """An audit hook: Python calls it before the socket is used."""
    if event in _NOTED:
        place = arguments[1] if event == "socket.connect" else arguments[:2]
        sys.stderr.write(f"NETWORK {place}\n")


sys.addaudithook(note)
sys.exit(main(["worker", *sys.argv[1:]]))
