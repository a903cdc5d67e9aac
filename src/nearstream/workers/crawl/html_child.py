"""The child process that turns HTML into text, one document at a time.

It is started as a script, and imports only the rooms of nearstream that read HTML. A message in either direction is a
length in 4 bytes (big-endian) and that many bytes. A question begins with a byte that names the work: `v`, `m`, `a`,
`M` or `A`. The first message of the child is empty and says that it is ready.

A page that takes over the parser finds nothing here: no secret in the environment, no right to open a file or a
connection, to start a program, or to gain rights. Where pyseccomp or its library is missing, the limits of the process
remain.
"""

import ctypes
import resource
import signal
import socket
import sys

from nearstream.workers.crawl.html_mail import visible_text
from nearstream.workers.crawl.html_page import page

try:
    import pyseccomp  # type: ignore[import-untyped]
except (ImportError, OSError, RuntimeError):  # it is there on Linux alone, and needs a library of the system
    pyseccomp = None

_MEMORY_BYTES = 1 << 30
_FILES = 64
_NO_NEW_PRIVILEGES = 38  # PR_SET_NO_NEW_PRIVS of prctl(2)
# What the work needs once all modules are imported. Each other call of the system fails.
_CALLS = (
    *("read", "recvfrom", "recvmsg", "write", "sendto", "sendmsg", "poll", "ppoll", "close", "fstat", "lseek"),
    *("brk", "mmap", "mremap", "munmap", "mprotect", "madvise", "futex", "sched_yield", "getrandom"),
    *("rt_sigaction", "rt_sigprocmask", "rt_sigreturn", "sigaltstack", "alarm", "setitimer", "restart_syscall"),
    *("clock_gettime", "clock_nanosleep", "gettimeofday", "getpid", "gettid", "tgkill", "exit", "exit_group"),
)


def answer(work: bytes, content: bytes) -> bytes:
    """Return the answer to a question."""
    html = content.decode("utf-8", "replace")
    kind = work.lower()
    text = visible_text(html) if kind == b"v" else page(html, main_content=kind == b"m", links=work != kind)
    return text.encode("utf-8", "replace")


def confine() -> None:
    """Give up what the work does not need."""
    limits = [(resource.RLIMIT_CORE, 0), (resource.RLIMIT_FSIZE, 0), (resource.RLIMIT_NOFILE, _FILES)]
    if sys.platform == "linux":
        limits += [(resource.RLIMIT_AS, _MEMORY_BYTES), (resource.RLIMIT_NPROC, 0)]
    for kind, most in limits:
        resource.setrlimit(kind, (most, most))
    if sys.platform != "linux":
        return
    ctypes.CDLL(None).prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0)
    answer(b"m", b"<p>warm up</p>")  # what is imported late is imported now
    if pyseccomp is not None:
        rules = pyseccomp.SyscallFilter(defaction=pyseccomp.ERRNO(1))
        for call in _CALLS:
            rules.add_rule(pyseccomp.ALLOW, call)
        rules.load()


def main(deadline_seconds: int) -> None:
    """Answer messages on standard input, which is a socket, until its other end is closed.

    After the deadline the kernel ends the process, also if its parent is gone or the parser holds the lock of Python.
    """
    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # which its parent outlives too
    connection = socket.socket(fileno=0)
    confine()
    connection.sendall(bytes(4))
    stream = connection.makefile("rb")
    while len(size := stream.read(4)) == 4:
        question = stream.read(int.from_bytes(size, "big"))
        signal.alarm(deadline_seconds)
        text = answer(question[:1], question[1:])
        signal.alarm(0)
        connection.sendall(len(text).to_bytes(4, "big") + text)


if __name__ == "__main__":
    main(int(sys.argv[1]))
