"""HTML to text, in a process that can be killed, or by stripping tags."""

import os
import re
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from nearstream.workers.crawl.html_processes import HtmlProcesses, PageText
from nearstream.workers.crawl.html_text import HTML_MAX_CHARACTERS, for_parser, read_html, strip_tags


def newest_child() -> Path:
    """Return the folder in /proc of the process that was started last to read HTML."""
    tasks = Path("/proc/self/task").glob("*/children")
    children = [Path("/proc", child) for task in tasks for child in task.read_text().split()]
    reading = (child for child in children if b"html_child.py" in (child / "cmdline").read_bytes())
    return max(reading, key=lambda child: int(child.name))


HAS_A_SIZE = ("font-size:13px", "color:red; font: bold 13px Arial", "font-size:small", "font-size:1rem")
HAS_NO_SIZE = ("font-size:1em", "font-size:0", "font-size:100%", "font-size:inherit", "color:red")
OF_MAILS = ("button", "figure", "figcaption", "label", "legend", "OBJECT", "summary")


def pages() -> Iterator[tuple[str, str]]:
    """Yield pages, each with the words that a reader sees."""
    yield "<title>T</title><style>p {}</style><p>o<b>n</b>e &amp;<script>no</script><table><tr><td>a<td>b", "one & a b"
    # Generators of mails give their cells no size, so that no blank takes room.
    cell = "<table><tr><td style='font-size:0px'>not <b>not</b><i><div style='{}'>one</div></i> not</td></table>"
    for style in HAS_A_SIZE:
        yield cell.format(style), "one"
    for style in HAS_NO_SIZE:
        yield cell.format(style), ""
    classes = "<div style='font-size:0'>not <b class=a>one</b> <b class=a>two</b></div>"
    yield classes, ""
    yield f"<style>.a {{color: red; font-size: 14px}}</style>{classes}", "one two"
    for element in OF_MAILS:
        yield f"<p>one</p><{element} class=a>two</{element}>three", "one two three"
    yield "<div hidden><p style='display:none'>" * 200 + "no" + "</p></div>" * 200 + "<p>one", "one"
    yield "<div>" * 2_990 + "deep", "deep"


def test_html_becomes_what_a_reader_sees_of_it(processes: HtmlProcesses) -> None:
    for source, words in pages():
        found, links = read_html(source, processes)
        assert (found.split(), links is None) == (words.split(), False), source[:200]


@pytest.mark.skipif(sys.platform != "linux", reason="finds the process in /proc")
def test_b49_a_document_that_ends_its_process_falls_back() -> None:
    with closing(HtmlProcesses(1)) as html:
        assert html.text("<p>before") == ("before", ())
        os.kill(int(newest_child().name), signal.SIGKILL)
        assert read_html("<p>text", html) == (" text", None)
        assert read_html("<p>after", html) == ("after", ())


def test_a_closed_pool_starts_its_processes_again() -> None:
    html = HtmlProcesses(1)
    html.start()
    for word in ("one", "two"):
        assert html.text(f"<p>{word}") == (word, ())
        html.close()


def test_b47_html_beyond_the_bounds_never_reaches_a_parser() -> None:
    with closing(HtmlProcesses(0, deadline_seconds=0.01)) as html:
        for bomb in ("x" * (HTML_MAX_CHARACTERS + 1), "<script>" * 200_000 + "<!--" * 50_000):
            assert read_html(bomb, html)[1] is None
        assert read_html("<p>text", html) == (" text", None)  # no process is free


EACH = ["one", "two", "three", "four", "five", "six"]


def test_tags_are_stripped() -> None:
    for source, words in [
        ("<p class='a'>one<br/>two</p>", ["one", "two"]),
        ("a < b and c > d", ["a", "<", "b", "and", "c", ">", "d"]),
        ("one<script>no</script>two<STYLE>no</STYLE >three<!-- no --> four", ["one", "two", "three", "four"]),
        ("one<script>never closed", ["one"]),
        ("&lt;b&gt; &amp;#65; &nosuch; &#65;", ["<b>", "&#65;", "&nosuch;", "A"]),
        ("cut <a href='x", ["cut"]),
        ("İ<SCRIPT>no</SCRIPT>two", ["İ", "two"]),
        # What looks like the start of a comment or a script, but is none in a browser.
        ("<a title='<!--'>one <a title=\"<script>\">two<!-->three<!--->four<!-- no --!>five<script-x>six", EACH),
        ("<?xml version='1.0'?><title/><script src='a.js'/>one<style/> two three four five six", EACH),
        (
            "<\u017fcript>one <textarea><script></textarea>two three four five six",
            ["<\u017fcript>one", "<script>", *EACH[1:]],
        ),
    ]:
        assert strip_tags(source).split() == words


HOSTILE = ("<a =\"' =", "<!-- a-b ", "<!-->", "<a b-", "<textarea>")


def test_tags_are_stripped_in_linear_time() -> None:
    def seconds(piece: str, size: int) -> float:
        source = piece * (size // len(piece))
        started = time.process_time()
        for_parser(source + " " * HTML_MAX_CHARACTERS)
        strip_tags(source)
        return time.process_time() - started

    for piece in (*HOSTILE, "<", "<a ", "<!--", "<script>", "</script", "&", "&#9", "<style>x</style>"):
        short, long = min(seconds(piece, 1 << 16) for _ in range(3)), min(seconds(piece, 1 << 20) for _ in range(2))
        assert long < 16 * 6 * max(short, 0.002), piece  # quadratic would be 256 times as long


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_a_process_that_reads_html_knows_no_secret_and_has_no_rights(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("NEARSTREAM_HASH_KEY", "NEARSTREAM_API_TOKEN", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "a-secret-of-thirty-two-characters")
    with closing(HtmlProcesses(1)) as html:
        assert html.text("<p>before") == ("before", ())
        child = newest_child()
        named = {line.partition(b"=")[0] for line in (child / "environ").read_bytes().split(b"\0")[:-1]}
        assert {name for name in named if not name.startswith(b"MALLOC_")} <= {b"LD_LIBRARY_PATH", b"PYTHONPATH"}
        status = dict(line.split(":\t", 1) for line in (child / "status").read_text().splitlines() if ":\t" in line)
        assert (status["NoNewPrivs"], status["Seccomp"]) == ("1", "2")
        limits = (child / "limits").read_text()
        assert re.search(r"Max open files +64 +64", limits)
        assert re.search(r"Max core file size +0 +0", limits)
        assert re.search(r"Max address space +1073741824 +1073741824", limits)
        after = html.page("<title>t</title><p>after", main_content=True)
        assert after == PageText("t", ("after",), shown=(("after", True),))


def test_a_page_of_very_many_elements_is_read_in_the_time_that_each_takes(processes: HtmlProcesses) -> None:
    """To ask for one element after the other took 4 s for 800 of them, which newsletters have."""
    cell, count = "<div style='color:red'>seen<b style='display:none'>not <i hidden>nor this</i></b></div>", 12_800
    assert processes.text(f"<body>{cell * count}") == ("\n".join(["seen"] * count), ())
    links = "<a href='/x'>seen</a><img src='y.png'><script>1</script> "
    page = processes.page(f"<body><p>{'A word more. ' * 99}{links * count}", main_content=False, links=True)
    assert page is not None
    assert "".join(page.parts).count("seen") == count
