"""Run programs in forks of this process, which has imported what they need: `python -m tests.support.fork_server FD`.

FD is a socket. Each message on it asks for one process: its module with the arguments, its environment, its folder and
its process group (0: that of this process) as JSON, and the files that are its standard input, output and error, and
where its pid and its exit status are written.
"""

import atexit
import gc
import inspect
import json
import os
import pkgutil
import runpy
import signal
import socket
import struct
import sys
import tempfile
import threading
from importlib import import_module
from typing import Any, NoReturn

from nearstream import workers
from tests.devstack.server import end_with_parent

# What Faust imports only when a worker runs.
LATE = (
    *("faust.app.router", "faust.assignor.partition_assignor", "faust.fixups.django", "faust.stores"),
    *("faust.tables.globaltable", "faust.tables.manager", "faust.tables.sets", "faust.transport.conductor"),
    *("faust.transport.drivers.aiokafka", "faust.windows", "encodings.idna"),
)
MESSAGE_BYTES = 128 * 1024
NUMBER = struct.Struct("=i")
_FILES = 4


def serve(control: socket.socket) -> list[str]:
    """Start processes until the other end is closed, and return only in each of them, with its arguments.

    They end with this process, so that a run of tests which is killed leaves none.
    """
    tie = end_with_parent()
    while True:
        message, files, _, _ = socket.recv_fds(control, MESSAGE_BYTES, _FILES)
        if not message:
            os._exit(0)
        if os.fork() == 0:
            tie()
            control.close()
            return _forked(json.loads(message), files)
        for file in files:
            os.close(file)
        _forget_ended()


def _forked(asked: dict[str, Any], files: list[int]) -> list[str]:
    """Fork once more, into a program and a process that waits for its end."""
    *streams, status = files
    tie = end_with_parent()
    program = os.fork()
    if program:
        _report(program, streams, status)
    tie()
    os.close(status)
    for number, file in enumerate(streams):
        os.dup2(file, number)
        os.close(file)
    os.environ.clear()
    for line in asked["environment"]:
        name, _, os.environ[name] = line.partition("=")
    os.chdir(asked["folder"])
    if asked["group"]:
        os.setpgid(0, asked["group"])
    tempfile.tempdir = None  # `TMPDIR` is read when the first file is made
    arguments: list[str] = asked["arguments"]
    return arguments


def _report(program: int, streams: list[int], status: int) -> NoReturn:
    """Write the pid of a program, and its exit status when it has ended."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C ends the program, not who waits for it
    for file in (0, 1, 2, *streams):
        os.close(file)
    os.write(status, NUMBER.pack(program))
    os.write(status, NUMBER.pack(os.waitpid(program, 0)[1]))
    os._exit(0)


def run(program: str) -> NoReturn:
    """Run a program, and end as it ends, but without taking apart what this process has imported.

    Python frees every object at its end. That would write to all the memory that the processes share, which takes two
    thirds of the time of a short command.
    """
    code: int | str | None = None
    try:
        runpy.run_module(program, run_name="__main__", alter_sys=True)
    except SystemExit as ended:
        code = ended.code
    if code is not None and not isinstance(code, int):
        sys.exit(code)
    threading._shutdown()  # type: ignore[attr-defined] # what Python calls itself at its end
    atexit._run_exitfuncs()
    gc.collect()  # what was not closed says so
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except OSError:
        sys.exit(code)
    os._exit((code or 0) & 0xFF)


def _forget_ended() -> None:
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass


if __name__ == "__main__":
    ours = (found.name for found in pkgutil.walk_packages(workers.__path__, f"{workers.__name__}."))
    for module in (*LATE, *ours):
        if "__main__" not in module and "scrapy" not in module:
            import_module(module)
    inspect.getmodule(inspect.currentframe())  # looks at the files of all modules, once, as Faust does for each agent
    gc.collect()
    gc.freeze()  # else a collection would write to the memory that all share
    program, *sys.argv[1:] = serve(socket.socket(fileno=int(sys.argv[1])))
    run(program)
