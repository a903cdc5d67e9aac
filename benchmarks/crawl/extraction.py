"""Compare reading pages with plain Resiliparse: `python -m benchmarks.crawl.extraction [--pages N]`.

The ratio is processor time of this process and its children over that of Resiliparse alone in one process. Prints one
JSON object.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence

from benchmarks.crawl.pages import pages
from nearstream.workers.crawl.html_processes import HtmlProcesses
from nearstream.workers.crawl.page import PageReader

_ROUNDS = 5
_PLAIN = """
import sys, time
from resiliparse.extract.html2text import extract_plain_text
pages = sys.stdin.buffer.read().decode().split("\\0")
for page in pages[:20]:
    extract_plain_text(page, main_content=True, preserve_formatting=False, list_bullets=False, alt_texts=False)
began = time.process_time()
for page in pages:
    extract_plain_text(page, main_content=True, preserve_formatting=False, list_bullets=False, alt_texts=False)
print(time.process_time() - began)
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the ratio of each round, and their median."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pages", type=int, default=400)
    count = parser.parse_args(arguments).pages
    made = list(pages(count))
    rounds = [{"plain_seconds": plain(made), "ours_seconds": ours(made)} for _ in range(_ROUNDS)]
    ratios = [each["ours_seconds"] / each["plain_seconds"] for each in rounds]
    characters = sum(map(len, made))
    print(
        json.dumps(
            {
                "pages": count,
                "characters_per_page": characters // count,
                "rounds": rounds,
                "ratio": statistics.median(ratios),
                "ratio_spread": [min(ratios), max(ratios)],
            }
        )
    )
    return 0


def plain(made: Sequence[str]) -> float:
    """Return the processor seconds of Resiliparse alone, in a process of its own."""
    command = [sys.executable, "-c", _PLAIN]
    done = subprocess.run(command, input="\0".join(made).encode(), capture_output=True, check=True)  # noqa: S603
    return float(done.stdout)


def ours(made: Sequence[str]) -> float:
    """Return the processor seconds of reading the pages with all guards, in this process and in its child."""
    child = HtmlProcesses(1, start_seconds=60)
    reader = PageReader(processes=child)
    for page in made[:20]:
        reader.read(page.encode(), "text/html; charset=utf-8")
    started = _processor_seconds()
    began = time.process_time()
    for page in made:
        reader.read(page.encode(), "text/html; charset=utf-8")
    seconds = time.process_time() - began + _processor_seconds() - started
    reader.close()
    return seconds


def _processor_seconds() -> float:
    """Return the processor seconds of the children of this process."""
    return sum(map(_seconds_of, _children()))


def _children() -> list[int]:
    found = subprocess.run(  # noqa: S603
        ["/usr/bin/env", "pgrep", "-P", str(os.getpid()), "-f", "html_child"], capture_output=True, check=False
    )
    return [int(line) for line in found.stdout.split()]


def _seconds_of(process: int) -> float:
    with open(f"/proc/{process}/stat", encoding="ascii") as stat:
        fields = stat.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    raise SystemExit(main())
