"""How long a piece of work keeps all other threads of this process from running."""

import sys
import threading
import time
from collections.abc import Callable

_SWITCH_SECONDS = 0.0005
_LOOK_SECONDS = 0.002  # to look more often takes as much time as some of the work
_TRIES = 6
_USUAL_SECONDS = 0.015  # that the loop of `slowness` takes on the machines whose figures bounds are made from


def longest_hold(work: Callable[[], object], enough_seconds: float) -> float:
    """Return the longest time, in seconds of a usual CPU, in which work held the interpreter.

    Time of the CPU is counted, because a busy machine may keep this thread from running for longer. A CPU that shares
    its core with other work is slower, so the time is divided by how much slower than usual a loop is just then. The
    machine may also run the work and not the thread that watches it, so work that seems to hold for too long is done
    again.

    Args:
        work: What is done, up to six times.
        enough_seconds: A hold of so many seconds is good, and is not measured again.
    """
    longest = _longest_hold(work) / slowness()
    for _ in range(_TRIES - 1):
        if longest > enough_seconds:
            longest = min(longest, _longest_hold(work) / slowness())
    return longest


def slowness() -> float:
    """Return how many times as long as usual this machine takes now for a loop, at least 1."""
    began, number = time.thread_time(), 0
    for each in range(200_000):
        number ^= each * each
    return max(1.0, (time.thread_time() - began) / _USUAL_SECONDS)


def _longest_hold(work: Callable[[], object]) -> float:
    began, ended, done = threading.Event(), threading.Event(), threading.Event()

    def run() -> None:
        began.wait()
        try:
            work()
        finally:
            ended.set()
            done.wait()

    thread, before = threading.Thread(target=run, daemon=True), sys.getswitchinterval()
    sys.setswitchinterval(_SWITCH_SECONDS)  # as `nearstream serve` does
    try:
        thread.start()
        clock = time.pthread_getcpuclockid(thread.ident or 0)
        last, longest, is_ended = time.clock_gettime(clock), 0.0, False
        began.set()
        while not is_ended:
            time.sleep(_LOOK_SECONDS)
            is_ended, now = ended.is_set(), time.clock_gettime(clock)
            longest, last = max(longest, now - last), now
        done.set()
        thread.join()
    finally:
        sys.setswitchinterval(before)
    return longest
