"""Run a real Kafka broker and a real Redis without Docker, for development, demonstrations or tests."""

import argparse
import logging
import os
import signal
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from types import FrameType

from tests.devstack import background
from tests.devstack.server import StackUnavailableError
from tests.devstack.stack import BACKGROUND, LocalStack, started_stack

ELSEWHERE = 'make STACK="$HOME/nearstream-stack" stack'
ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run `python -m tests.devstack [run|start|stop]` and return its exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.devstack", description=__doc__)
    parser.add_argument("command", nargs="?", choices=["run", "start", "stop"], default="run")
    parser.add_argument("--folder", type=Path, help=f"data and logs (run: temporary; start, stop: {BACKGROUND})")
    parser.add_argument("--log", type=Path, help="where the output of `run` goes once the addresses are printed")
    options = parser.parse_args(arguments)
    # aiokafka would report each try to reach a broker that is not ready yet.
    logging.getLogger("aiokafka").setLevel(logging.CRITICAL)
    try:
        match options.command:
            case "run":
                _run(options.folder, options.log)
            case "start":
                _print_exports(background.start(options.folder or BACKGROUND))
            case _:
                stopped = background.stop(options.folder or BACKGROUND)
                sys.stderr.write("stopped\n" if stopped else "nothing to stop\n")
    except StackUnavailableError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    except OSError as error:
        if error.filename is None:
            raise
        sys.stderr.write(f"cannot write {error.filename}: {error.strerror}. Name a folder of yours: {ELSEWHERE}\n")
        return 1
    except KeyboardInterrupt:
        return 0 if options.command == "run" else 130
    return 0


def _run(folder: Path | None, log: Path | None) -> None:
    for number in ENDING:
        signal.signal(number, _interrupt)
    asked: list[int] = []
    signal.signal(background.REVIVE, lambda number, _: asked.append(number))
    with ExitStack() as resources:
        ports = {} if folder is None else resources.enter_context(background.owned(folder))
        stack = resources.enter_context(started_stack(folder=folder, wanted=ports))
        _tell(folder, stack, 0)
        _print_exports(stack)
        if log is not None:
            with log.open("wb") as output:
                os.dup2(output.fileno(), 1)
                os.dup2(output.fileno(), 2)
        revived = 0
        while True:
            time.sleep(1)
            if revived < len(asked):
                revived = len(asked)
                stack.restart_silent()
                _tell(folder, stack, revived)


def _tell(folder: Path | None, stack: LocalStack, revived: int) -> None:
    if folder is not None:
        own = {name: (each.pid, int(each.address.rpartition(":")[2])) for name, each in stack.servers.items()}
        background.tell(folder, background.Running(os.getpid(), stack.kafka, stack.redis, own, revived))


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    for number in ENDING:
        signal.signal(number, signal.SIG_IGN)
    raise KeyboardInterrupt


def _print_exports(stack: LocalStack | background.Running) -> None:
    sys.stdout.write(f"export NEARSTREAM_KAFKA={stack.kafka}\nexport NEARSTREAM_REDIS={stack.redis}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
