"""The child process that turns HTML into text, one document at a time.

It is started as a script, and imports only one room of nearstream. A message in either direction is a length in 4 bytes
(big-endian) and that many bytes. A question begins with a byte that names the work: `v`, `m`, `a`, `M` or `A`. The
first message of the child is empty and says that it is ready.

A page that takes over the parser finds nothing here: no secret in the environment, no right to open a file or a
connection, to start a program, or to gain rights. Where pyseccomp or its library is missing, the limits of the process
remain.
"""

import ctypes
import re
import resource
import signal
import socket
import sys
from collections import Counter
from collections.abc import Iterator
from hashlib import blake2b

from resiliparse.extract.html2text import extract_plain_text
from resiliparse.parse.html import HTMLTree
from resiliparse.parse.html.node import ElementNode

from nearstream.workers.crawl.html_seen import found, remove, take_unseen

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
# A main content of fewer than 100 words is not believed beside other text, and one of fewer than 200 not beside other
# sentences, because it may be a notice. The limits were measured on the pages of the tests of trafilatura.
_MAIN_WORDS, _SMALL_WORDS, _SENTENCE_WORDS = 200, 100, 10
_WORD_MAX_CHARACTERS = 16  # on average, with what is between words
_PROSE_LOST = 0.5  # of the words of the main content
_BESIDE_MIN = 2  # sentences beside the main content over it, from which on they count as parts of the page
# What a page hides at first may be shown by a script or a style sheet that is not in it.
_STYLED_LATER = re.compile(r"<script|<link\s[^<>]{0,500}stylesheet", re.IGNORECASE)
_LINKED = re.compile(r"<a\s[^<>]*+>([^<]*+)", re.IGNORECASE)
_WITHOUT_TEXT = "script, style, template, noscript, [hidden]"
_INPUT = re.compile("<input", re.IGNORECASE)
_VALUE_UNSEEN = frozenset(["hidden", "checkbox", "radio", "image", "password", "color", "range"])
_SPACELESS = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\ua4cf\uf900-\ufaff\U00020000-\U0003ffff"
_WORD = re.compile(rf"[{_SPACELESS}]{{1,2}}|[^\W{_SPACELESS}]+")
LEFT_OUT = "\x1f"  # which no part begins with, because it is a blank
_TARGET_MAX_CHARACTERS = 4_096
_FEW_WORDS, _FEW_CHARACTERS, _HIDDEN_WORDS = 8, 256, 40
_STYLE_NAME = re.compile(r"(?<=[\s\"'/])(?:style|hidden)(?=[\s=>/])", re.IGNORECASE)
# What mail programs put around a text that is answered.
_QUOTES = "blockquote[type=cite], .gmail_quote, .yahoo_quoted, .protonmail_quote, .moz-cite-prefix"
_BEGIN, _END = "\ufdd0", "\ufdd1"  # code points that are no characters
_HOST = re.compile(r"\s{0,64}(?:https?:)?//[^\s/?#\\<>\"']{1,300}", re.IGNORECASE)
_LINKS_MAX = 1_000
_LINKING = ("a", "area", "form")
# Browsers show the text of such a template, which belongs to the element around it.
_SHADOW = re.compile(r"<template(?=\s[^<>]{0,200}shadowrootmode)", re.IGNORECASE)
_XML_WITHIN = 64
_EMPTY = re.compile(r"<(iframe|noframes|noscript|script|style|textarea|title)\b([^<>]*+)(?<=/)>", re.IGNORECASE)
# Resiliparse leaves these out with their text, such as the caption of a picture.
_PASSED_OVER = re.compile(
    r"<(/?)(?=[bflnost])(?:button|fig(?:caption|ure)|l(?:abel|egend)|noscript|o(?:bject|pt(?:group|ion))|s(?:elect|ummary|vg)"
    r"|text(?:area)?)(?![^\s/>])",
    re.IGNORECASE,
)
# What Resiliparse leaves out of all text, and what shows the value of an attribute.
_APART = re.compile(
    r"<(?=[bfilost])(button|fig(?:caption|ure)|i(?:frame|nput)|label|o(?:bject|pt(?:group|ion))|s(?:elect|vg)|textarea)"
    r"(?![^\s/>])",
    re.IGNORECASE,
)
_WITH_VALUES = frozenset(["iframe", "input", "optgroup", "option", "textarea"])
_NO_TEXT = _WITH_VALUES | {"button", "figcaption", "figure", "label", "object", "select", "svg"}


def visible_text(html: str) -> str:
    """Return the visible text of the HTML of a mail, and where its links lead.

    Each block of text has its lines, and those of a quote begin with `>`. Each address is on a line of its own behind
    them, after `LEFT_OUT`, up to its host. If fewer than 8 of more than 40 words are visible, or none of more than 8,
    all count.
    """
    html = _PASSED_OVER.sub(r"<\1div", _closed(html))
    tree = HTMLTree.parse(html)
    take_unseen(tree, html)
    text = _mail_text(tree, html)
    if _count_words(text[:_FEW_CHARACTERS]) < _FEW_WORDS:
        whole = HTMLTree.parse(_STYLE_NAME.sub("", html))
        words = _mail_text(whole, html)
        least = _HIDDEN_WORDS if _count_words(text) else _FEW_WORDS
        tree, text = (whole, words) if _count_words(words) > least else (tree, text)
    return "\n".join([text, *(LEFT_OUT + link for link in _links(tree, html.lower()))])


def _mail_text(tree: HTMLTree, html: str) -> str:
    if tree.body is None:
        return ""
    for field in found(tree.body, "input") if _INPUT.search(html) else ():
        value = tree.create_text_node(f" {' '.join(_values(field))} ")
        if field.parent is not None and value is not None:
            field.parent.insert_before(value, field)
    quotes = found(tree.body, _QUOTES) if "quote" in html or "moz-cite" in html else ()
    for quote in quotes:
        begin, end = tree.create_text_node(_BEGIN), tree.create_text_node(_END)
        if begin is not None and end is not None and quote.first_child is not None:
            quote.insert_before(begin, quote.first_child)
            quote.append_child(end)
    text = extract_plain_text(tree, preserve_formatting=True, list_bullets=False, alt_texts=False)
    return "\n".join(_quoted(text)) if quotes else text


def _quoted(text: str) -> Iterator[str]:
    """Yield the lines of a text, with `>` before those between marks."""
    depth = 0
    for line in text.split("\n"):
        within = depth + line.count(_BEGIN)
        depth = max(0, within - line.count(_END))
        yield "> " * (within > 0) + line.replace(_BEGIN, "").replace(_END, "")


def _links(tree: HTMLTree, html: str) -> list[str]:
    """Return the addresses of visible links, up to their hosts."""
    hosts: set[str] = set()
    for name in _LINKING:
        for link in tree.body.get_elements_by_tag_name(name)[:_LINKS_MAX] if tree.body and f"<{name}" in html else ():
            target = _HOST.match(link.getattr("href") or link.getattr("action") or "")
            if target and target[0] not in hosts and (link.first_element_child or (link.text or "").strip()):
                hosts.add(target[0])
    return sorted(hosts)


def page(html: str, *, main_content: bool, links: bool = False) -> str:
    """Return the title of a web page and its text, after a sign.

    Each is on lines of its own: the title first, then the target of `rel=canonical`, which may be empty, then a digest
    of all text that is seen, empty if it is that of the text, then each part of the text, such as a paragraph. Parts as
    long as a sentence that are seen beside the main content come last, if they are twice as much, each after
    `LEFT_OUT`. The sign is `s` if the main content was too small, so that the text is all text of the page, else `-`.
    With `links` the targets of links and the addresses of images are in the text.
    """
    html = _closed(_SHADOW.sub("<div", html))
    tree = HTMLTree.parse(html)
    hidden = b"" if _STYLED_LATER.search(html) else _taken(tree, html)
    sign, parts = "-", _parts(tree, main_content=main_content)
    if not parts and _PASSED_OVER.search(html):
        return page(_PASSED_OVER.sub(r"<\1div", html), main_content=main_content, links=links)
    is_short = main_content and sum(map(len, parts)) < _MAIN_WORDS * _WORD_MAX_CHARACTERS  # counting takes its time
    if is_short and (words := sum(map(_count_words, parts))) < _MAIN_WORDS:
        every = _parts(tree, main_content=False)
        if _is_too_small(words, _lost(parts, every)):
            sign, parts, main_content = "s", every, False
    texts = _parts_with_links(tree, main_content=main_content) if links else parts
    lines = [LEFT_OUT + part for part in (_sentences_beside(html, tree, parts) if main_content else ())]
    seen = _seen_beside(html, tree, parts) if main_content else _digest(b"", _apart(html, tree, _NO_TEXT))
    seen = _digest(hidden, [seen]) if hidden else seen
    return "\n".join([sign + " ".join((tree.title or "").split()), _declared(tree), seen, *texts, *lines])


def _taken(tree: HTMLTree, html: str) -> bytes:
    """Take out what styles hide, and return the text with what was taken, empty if that is nothing.

    Styles are understood in part only, so that pages are never equal which differ in what may be hidden.
    """
    whole = _without_blanks(tree.body.text or "") if tree.body else b""
    take_unseen(tree, html)
    return whole if tree.body and _without_blanks(tree.body.text or "") != whole else b""


def _closed(html: str) -> str:
    """Return XHTML with end tags for empty elements, such as `<title/>`.

    Without them a parser of HTML takes all that follows for their content.
    """
    return _EMPTY.sub(r"<\1\2></\1>", html) if html[:_XML_WITHIN].lstrip().startswith("<?xml") else html


def _sentences_beside(html: str, tree: HTMLTree, parts: list[str]) -> list[str]:
    """Return the sentences beside the main content, if they are twice as much."""
    # Another extraction would take as long as the first one. What is in links is no sentence.
    main = sum(map(len, parts))
    linked = sum(map(len, _LINKED.findall(html)))
    if tree.body is None or len(tree.body.text or "") - linked - main <= _BESIDE_MIN * main:
        return []
    beside = Counter(_parts(tree, main_content=False)) - Counter(parts)
    sentences = [part for part in beside.elements() if _count_words(part) >= _SENTENCE_WORDS]
    return sentences if sum(map(len, sentences)) > _BESIDE_MIN * main else []


def _seen_beside(html: str, tree: HTMLTree, parts: list[str]) -> str:
    """Return a digest of the text of a page, empty if the parts hold this text.

    Elements without text for a person are removed.
    """
    if tree.body is None:
        return ""
    for element in found(tree.body, _WITHOUT_TEXT):
        remove(element)
    text, content = (_without_blanks(each) for each in (tree.body.text or "", "".join(parts)))
    return _digest(text if text != content else b"", _apart(html, tree, _WITH_VALUES))


def _digest(text: bytes, shown: list[str]) -> str:
    data = text + _without_blanks("\t".join(shown))
    return blake2b(data, digest_size=16).hexdigest() if data else ""


def _apart(html: str, tree: HTMLTree, names: frozenset[str]) -> list[str]:
    """Return the texts and values of elements that are in no text."""
    shown: list[str] = []
    for name in sorted({name.lower() for name in _APART.findall(html)} & names):
        for element in tree.body.get_elements_by_tag_name(name)[:] if tree.body else ():
            shown += [element.text or "", *(_values(element) if name in _WITH_VALUES else ())]
    return shown


def _values(element: ElementNode) -> list[str]:
    """Return what an element shows of its attributes."""
    if element.tag != "input":
        return [value for name in ("placeholder", "srcdoc", "label") if (value := element.getattr(name))]
    if (element.getattr("type") or "").lower() in _VALUE_UNSEEN:
        return []
    return [value for name in ("value", "placeholder") if (value := element.getattr(name))]


def _without_blanks(text: str) -> bytes:
    return text.casefold().encode("utf-8", "replace").translate(None, b" \t\n\v\f\r")


def _declared(tree: HTMLTree) -> str:
    """Return the target of the links in the head of a page that say `rel=canonical`.

    Nothing: there is no such link, or several with different targets.
    """
    links = found(tree.head, "link[rel][href]") if tree.head else ()
    canonical = (link for link in links if "canonical" in (link.getattr("rel") or "").lower().split())
    targets = {"".join((link.getattr("href") or "").split()) for link in canonical}
    target = targets.pop() if len(targets) == 1 else ""
    return target if len(target) <= _TARGET_MAX_CHARACTERS else ""


def _is_too_small(words: int, lost: tuple[int, int]) -> bool:
    """Return whether a main content may be a notice or a heading beside what a person reads.

    Of the words that are not in it, `lost` has the number of all, and of those in parts as long as a sentence.
    """
    return (words < _SMALL_WORDS and lost[0] > 0) or lost[1] > words * _PROSE_LOST


def _lost(parts: list[str], every: list[str]) -> tuple[int, int]:
    kept, counts = list(map(_count_words, parts)), list(map(_count_words, every))
    return sum(counts) - sum(kept), _prose(counts) - _prose(kept)


def _prose(counts: list[int]) -> int:
    return sum(count for count in counts if count >= _SENTENCE_WORDS)


def _count_words(text: str) -> int:
    return len(_WORD.findall(text))


def answer(work: bytes, content: bytes) -> bytes:
    """Return the answer to a question."""
    html = content.decode("utf-8", "replace")
    kind = work.lower()
    text = visible_text(html) if kind == b"v" else page(html, main_content=kind == b"m", links=work != kind)
    return text.encode("utf-8", "replace")


def _parts_with_links(tree: HTMLTree, *, main_content: bool) -> list[str]:
    """Return the parts of a page with the targets of its links and the addresses of its images."""
    for image in found(tree.body, "img[src]") if tree.body else ():
        image.setattr("alt", (image.getattr("src") or "")[:_TARGET_MAX_CHARACTERS])
    return _parts(tree, main_content=main_content, links=True)


def _parts(tree: HTMLTree, *, main_content: bool, links: bool = False) -> list[str]:
    """Return the paragraphs, headings and other parts of a page, each in one line."""
    text = extract_plain_text(
        tree, main_content=main_content, preserve_formatting=True, list_bullets=False, alt_texts=links, links=links
    )
    return [" ".join(line.split()) for line in text.split("\n") if line.strip()]


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
