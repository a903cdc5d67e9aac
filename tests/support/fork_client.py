"""What a shell runs in place of a program of ours: `python -IS fork_client.py FD MODULE ARGUMENT...`.

It asks the fork server, which reads the socket FD, for the process, hands on signals to it, and ends as it ends. It
imports nothing that takes long.
"""

import json
import os
import signal
import socket
import struct
import sys

_NUMBER = struct.Struct("=i")
_HANDED_ON = (signal.SIGTERM, signal.SIGINT)


def main() -> int:
    """Run the program, and return its exit code, or what the shell makes of the signal that ended it."""
    signal.pthread_sigmask(signal.SIG_BLOCK, _HANDED_ON)
    message = {
        "arguments": sys.argv[2:],
        "environment": [f"{name}={text}" for name, text in os.environ.items()],
        "folder": os.getcwd(),
        "group": os.getpgrp(),
    }
    ours, theirs = socket.socketpair()
    with socket.socket(fileno=int(sys.argv[1])) as server, theirs:
        socket.send_fds(server, [json.dumps(message).encode()], [0, 1, 2, theirs.fileno()])
    (pid,) = _NUMBER.unpack(ours.recv(_NUMBER.size))
    for number in _HANDED_ON:
        signal.signal(number, lambda got, _: os.kill(pid, got))
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _HANDED_ON)
    code = os.waitstatus_to_exitcode(*_NUMBER.unpack(ours.recv(_NUMBER.size)))
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    sys.exit(main())
