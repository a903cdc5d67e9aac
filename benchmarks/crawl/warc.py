"""Read a large WARC file as `produce` does: `python -m benchmarks.crawl.warc [--bytes N] [--folder DIR] [--produce]`.

It makes a compressed WARC file of that many unpacked bytes from made-up pages, reads it, and prints pages a second, and
the memory after a tenth and at the end, as one JSON object. With `--produce` it starts a Kafka of its own and runs
`nearstream produce` instead, without the figure after a tenth.
"""

import argparse
import asyncio
import gzip
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import cycle
from pathlib import Path

from benchmarks.crawl.pages import pages
from benchmarks.stream.measuring import servers
from benchmarks.workers.deployed import deployment
from nearstream.workers.files.source import Refused, read

_DISTINCT_PAGES = 500


def main(arguments: Sequence[str] | None = None) -> int:
    """Print one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bytes", type=int, default=1 << 30)
    parser.add_argument("--folder", type=Path, default=None)
    parser.add_argument("--produce", action="store_true")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        path = Path(folder) / "crawl.warc.gz"
        made = write(path, options.bytes)
        figures = produced(path, made) if options.produce else timed(path, made)
        print(json.dumps({"unpacked_bytes": options.bytes, "packed_bytes": path.stat().st_size, **figures}))
    return 0


def write(path: Path, size: int) -> int:
    """Write a WARC file with a gzip member for each record, and return how many pages it has."""
    bodies = [page.encode() for page in pages(_DISTINCT_PAGES)]
    number = written = 0
    with path.open("wb") as out:
        for number, body in enumerate(cycle(bodies), 1):
            record = b"".join(_record(number, body))
            out.write(gzip.compress(record, 1))
            written += len(record)
            if written >= size:
                break
    return number


def timed(path: Path, made: int) -> dict[str, float | int | dict[str, int]]:
    """Read a file and return the figures."""
    passed_over = Counter[str]()
    sent, early = 0, 0
    began = time.perf_counter()
    for item in read([str(path)], passed_over=passed_over):
        if isinstance(item, Refused):
            raise SystemExit(f"{item.source}: {item.reason}")
        sent += 1
        if sent == made // 10:
            early = _peak_bytes()
    seconds = time.perf_counter() - began
    return {
        "pages": sent,
        "pages_per_second": round(sent / seconds),
        "peak_bytes_after_a_tenth": early,
        "peak_bytes": _peak_bytes(),
        "passed_over": dict(passed_over),
    }


def produced(path: Path, made: int) -> dict[str, float | int]:
    """Send a file to Kafka with the command, and return the figures."""
    with servers(path.parent) as started:
        environment = asyncio.run(deployment(started.stack)).environment
        command = [sys.executable, "-m", "nearstream", "produce", "--quiet", str(path)]
        began = time.perf_counter()
        done = subprocess.run(command, env=environment, capture_output=True, check=False)  # noqa: S603 - our own module
        seconds = time.perf_counter() - began
        sender = resource.getrusage(resource.RUSAGE_CHILDREN)  # of all children that have ended, which is this one
    if done.returncode or f"sent {made}," not in done.stderr.decode():
        raise SystemExit(f"nearstream produce: {done.returncode} {done.stderr.decode()}")
    return {"pages": made, "pages_per_second": round(made / seconds), "peak_bytes": sender.ru_maxrss * 1024}


def _record(number: int, body: bytes) -> Iterator[bytes]:
    block = b"HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\n\r\n" + body
    yield b"WARC/1.0\r\nWARC-Type: response\r\nWARC-Date: 2026-03-02T08:15:00Z\r\n"
    yield b"WARC-Target-URI: https://a.example/%d\r\nContent-Type: application/http; msgtype=response\r\n" % number
    yield b"Content-Length: %d\r\n\r\n" % len(block)
    yield block
    yield b"\r\n\r\n"


def _peak_bytes() -> int:
    kibibytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return kibibytes * (1 if sys.platform == "darwin" else 1024)


if __name__ == "__main__":
    raise SystemExit(main())
