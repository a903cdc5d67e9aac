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
from collections.abc import Iterable, Iterator
from hashlib import blake2b
from html import unescape

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
# A main content of fewer words may be a notice or a heading. It is believed if it holds sentences and is not small
# beside others, or if the page marks it, because a frame makes the short articles of a site alike.
_MAIN_WORDS, _TOLD_WORDS, _SENTENCE_WORDS = 200, 25, 10
_WORD_MAX_CHARACTERS = 16  # on average, with what is between words
_PROSE_LOST = 2  # times the words of the main content
_MAIN_ELEMENT = re.compile(r"<(?:main|article)(?![^\s/>])", re.IGNORECASE)
# What a page hides at first may be shown by a script or a style sheet that is not in it.
_STYLED_LATER = re.compile(r"<script|<link\s[^<>]{0,500}stylesheet", re.IGNORECASE)
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
# Code points that are no characters, outside the plane of which Resiliparse leaves out single symbols.
_BEGIN, _END, _IMAGE, _ALT = "\U0001fffe", "\U0001ffff", "\U0002fffe", "\U0002ffff"
_HOST = re.compile(r"\s{0,64}(?:https?:)?//[^\s/?#\\<>\"']{1,300}", re.IGNORECASE)
_LINKS_MAX = 1_000
_LINKING = ("a", "area", "form")
# Browsers show the text of such a template, which belongs to the element around it.
_SHADOW = re.compile(r"<template(?=\s[^<>]{0,200}shadowrootmode)", re.IGNORECASE)
_XML_WITHIN = 64
_EMPTY = re.compile(r"<(iframe|noframes|noscript|script|style|textarea|title)\b([^<>]*+)(?<=/)>", re.IGNORECASE)
# Resiliparse leaves these out with their text, such as the caption of a picture.
_PASSED_OVER = re.compile(
    r"<(/?)(?=[bflnost])(button|f(?:ig(?:caption|ure)|rameset)|l(?:abel|egend)|no(?:frames|script)|o(?:bject|pt(?:group|ion))|s(?:elect|ummary|vg)"
    r"|text(?:area)?)(?![^\s/>])",
    re.IGNORECASE,
)
_OPENED = r"<\1div \2"  # with the former name as an attribute
# What a person sees of a page that is no text of it: fields, and drawings.
_FIELDS = re.compile(
    r"<(?=[/bilost])(?:(?P<start>button|label|select|svg|textarea)(?![^\s/>])|(?P<end>/)(?:button|label|select|svg|textarea)\s*+>"
    r"|(?P<option>option)[^<>]*+>|input(?=[\s/>])(?>(?:[^<>\"']|\"[^\"]{0,4096}\"|'[^']{0,4096}')*)>)",
    re.IGNORECASE,
)
_TEXTAREA = re.compile("<(/?)textarea", re.IGNORECASE)
# Where a page may hold its whole text for readers without scripts, or for those who copy the text.
_ASIDE = re.compile(
    r"<(noscript|textarea)(?![^\s/>])(?![^<>]{0,500}(?:hidden|display:\s?none))[^<>]*+>((?>(?:[^<]++|<(?!/\1))*))",
    re.IGNORECASE,
)
_OF_SCRIPTS = re.compile("javascript", re.IGNORECASE)  # as a notice says that asks for scripts
_FIELD = re.compile(f"{_BEGIN}[^{_BEGIN}{_END}]*{_END}")
_FIELDS_NESTED = 3
_MARKS = re.compile(f"[{_BEGIN}{_END}{_IMAGE}{_ALT}]")
_LINK = re.compile(r'<a href="([^"]*)">')
_LINKED = re.compile(r"<a [^<>]*>[^<]*</a>")
_LONG_LINK = re.compile(r'<a href="[^"\n]*\n[^"]*">')
_TAG = re.compile("<[^<>]*>")
_MARKUP = re.compile(r"[<>&\s]+")  # which Resiliparse escapes only in some places
_PICTURE = re.compile(f"{_IMAGE}([^{_IMAGE}{_ALT}]*){_ALT}([^{_IMAGE}{_END}]*){_END}")
# Up to the query, and nothing of what is in the page itself.
_TARGET = re.compile(rf'<a href="((?!(?i:data|javascript):|[?#"])[^"?#]+)|{_IMAGE}((?!(?i:data):)[^{_ALT}?#]+)')
# Resiliparse leaves out an element of one character, as a symbol.
_RUBY, _JOINT = re.compile(r"</?r(?:uby|[bpt])(?![^\s/>])[^<>]*+>", re.IGNORECASE), "\U0003fffe"
_READINGS = ["rp", "rt"]  # which repeat the words below them
# An element that holds the title of the page holds its text too.
_COMMENTS = (
    ":is([id^=comment i], [class^=comment i], .comments, .comment-list, .commentlist, .comments-area, .post-comments,"
    " .user-comments, .replies, .replies-wrapper, #disqus_thread, .disqus_thread, #respond, .respond):not(:has(h1))"
)
_UNSEEN = [*_READINGS, "[hidden]", "audio", "canvas", "datalist", "dialog:not([open])", "video"]
_WITH_VALUES = "iframe[srcdoc], optgroup[label], option[label], div[placeholder]"


def visible_text(html: str) -> str:
    """Return the visible text of the HTML of a mail, and where its links lead.

    Each block of text has its lines, and those of a quote begin with `>`. Each address is on a line of its own behind
    them, after `LEFT_OUT`, up to its host. If fewer than 8 of more than 40 words are visible, or none of more than 8,
    all count.
    """
    html = _PASSED_OVER.sub(_OPENED, _closed(html))
    tree = HTMLTree.parse(html)
    take_unseen(tree, html)
    for element in found(tree.body, "[noscript]") if tree.body else ():  # which hardly a mail program shows
        remove(element)
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
    text = extract_plain_text(
        tree, preserve_formatting=True, list_bullets=False, alt_texts=False, skip_elements=_READINGS
    )
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
    """Return what is read of a web page, in lines.

    They are its title after a sign, the target of `rel=canonical`, a digest of text that may be hidden, the number of
    the parts of its text, these parts, such as a paragraph, and all parts that are seen, see `_shown`. The target and
    the digest may be empty. The sign is `s` if the main content was too small, so that the text is all text of the
    page, else `-`. With `links` the targets of links and the addresses of images are in the text.
    """
    marked = _FIELDS.sub(_marked, _closed(_SHADOW.sub("<div", html)))
    tree = HTMLTree.parse(_RUBY.sub(rf"\g<0>{_JOINT}", marked))
    hidden = b"" if _STYLED_LATER.search(html) else _taken(tree, html)
    for image in found(tree.body, "img, area") if tree.body else ():
        values = (image.getattr(name) or "" for name in ("src", "alt"))
        source, alt = (_MARKUP.sub(" ", value)[:_TARGET_MAX_CHARACTERS].strip() for value in values)
        image.setattr("alt", f"{_IMAGE}{source}{_ALT} {alt} {_END}")
    _keep_footers(tree)
    every = _extracted(tree, main_content=False)
    if _PASSED_OVER.search(html) and (not every or _is_aside(html, every)):
        return page(_PASSED_OVER.sub(_OPENED, html), main_content=main_content, links=links)
    main = _main(tree) if main_content else every
    sign, parts = "-", _parts(main, links=links)
    is_short = main_content and sum(map(len, parts)) < _MAIN_WORDS * _WORD_MAX_CHARACTERS  # counting takes its time
    if is_short and sum(map(_count_words, parts)) < _MAIN_WORDS:
        all_parts = _parts(every, links=links)
        if _is_too_small(html, parts, all_parts, _parts(_LINKED.sub("", every), links=False)):
            frames = found(tree.body, "iframe[srcdoc]") if tree.body else ()
            framed = [part for frame in frames for part in _of_value(frame.getattr("srcdoc") or "")]
            sign, parts, main = "s", all_parts and [*all_parts, *framed], every
    shown = list(_shown(every, {*(main if parts else every).split("\n")}))
    for element in found(tree.body, _WITH_VALUES) if tree.body else ():
        shown += [f"-{part}" for value in _values(element) for part in _of_value(value)]
    parts = parts or [line[1:] for line in shown if not line.startswith(("+@", "-@"))]
    title = " ".join(_MARKS.sub("", tree.title or "").split())
    return "\n".join([sign + title, _declared(tree), _digest(hidden), str(len(parts)), *parts, *shown])


def _keep_footers(tree: HTMLTree) -> None:
    """Put the footers of articles that have no links, such as a correction, into the main content."""
    for footer in found(tree.body, "article footer") if tree.body else ():
        note = None if footer.query_selector("a") else tree.create_element("div")
        if note is None or footer.parent is None:
            continue
        footer.parent.insert_before(note, footer)
        for node in list(footer.child_nodes):
            note.append_child(node)


def _of_value(value: str) -> list[str]:
    """Return the parts of the page in a frame, or of a value of a field."""
    return _parts(_extracted(HTMLTree.parse(value), main_content=False), links=False)


def _marked(field: re.Match[str]) -> str:
    """Return the tag of a field with a mark where its text begins or ends."""
    tag = _TEXTAREA.sub(r"<\1div", field[0])  # behind which Resiliparse would end no line
    if field["start"]:
        return _BEGIN + tag
    return f"{tag} " if field["option"] else tag + _END if field["end"] else f"{_BEGIN}{tag}{_END}"


def _main(tree: HTMLTree) -> str:
    """Return the lines of the main content without comments, unless few sentences are beside what is named so."""
    text = _extracted(tree, main_content=True)
    is_short = len(text) < _MAIN_WORDS * _WORD_MAX_CHARACTERS
    if is_short and _prose(map(_count_words, _parts(text, links=False))) < _TOLD_WORDS:
        return _extracted(tree, main_content=True, comments=True)
    return text


def _extracted(tree: HTMLTree, *, main_content: bool, comments: bool = False) -> str:
    """Return the lines of a page, with links as tags, fields and images between marks."""
    text = extract_plain_text(
        tree,
        preserve_formatting="minimal_html",
        main_content=main_content,
        list_bullets=False,
        links=True,
        form_fields=True,
        skip_elements=[*_UNSEEN, _COMMENTS] if main_content and not comments else _UNSEEN,
    )
    text = _LONG_LINK.sub(lambda link: link[0].replace("\n", " "), text.replace("<br>", "\n").replace(_JOINT, ""))
    # Resiliparse puts brackets around a field.
    return text.replace(f"{_BEGIN}[ ", _BEGIN).replace(f" ] {_END}", _END).replace(f" ]{_END}", _END)


def _parts(text: str, *, links: bool) -> list[str]:
    """Return the parts of an extracted text, without fields, each in one line."""
    if _IMAGE in text:
        text = _PICTURE.sub(r" \1 " if links else "", text)
    text = _LINK.sub(r"(\1) ", text) if links else text
    for _ in range(_FIELDS_NESTED if _BEGIN in text else 0):
        text = _FIELD.sub(lambda field: "\n" if "\n" in field[0] else " ", text)
    plain = _TAG.sub("", text)
    lines = unescape(plain if plain.isascii() else _MARKS.sub("", plain)).split("\n")
    return [part for line in lines if (part := " ".join(line.split()))]


def _shown(text: str, main: set[str]) -> Iterator[str]:
    """Yield all parts that are seen of a page.

    Each is one line, behind `+` in the main content and else behind `-`.

    The addresses of the links and images of a block follow its text, after `@`. Fields are parts of their own.
    """
    plain = _TAG.sub("", _PICTURE.sub(r"\2", text) if _IMAGE in text else text)
    lines = unescape(plain.replace(_BEGIN, "\x1f").replace(_END, "\x1f")).split("\n")
    for block, line in zip(text.split("\n"), lines, strict=True):
        if not block:
            continue
        sign = "+" if block in main else "-"
        for words in line.split("\x1f") if "\x1f" in line else (line,):
            if words := " ".join(words.split()):
                yield sign + words
        if "<a" in block or _IMAGE in block:
            targets = " ".join([link or image for link, image in _TARGET.findall(block)])
            if targets:
                yield f"{sign}@{targets}"


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


def _digest(data: bytes) -> str:
    return blake2b(data, digest_size=16).hexdigest() if data else ""


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


def _is_aside(html: str, every: str) -> bool:
    """Return whether an element that is passed over holds most sentences of a page."""
    words = 0
    for name, aside in _ASIDE.findall(html):
        text = " ".join(_TAG.sub(" ", unescape(aside)).split())
        if name.lower() == "textarea" or not _OF_SCRIPTS.search(text, 0, _FEW_CHARACTERS):
            words = max(words, _count_words(text))
    return words >= _TOLD_WORDS and words > _PROSE_LOST * _prose(
        map(_count_words, _parts(_LINKED.sub("", every), links=False))
    )


def _is_too_small(html: str, *texts: list[str]) -> bool:
    """Return whether a main content may be a notice or a heading beside what a person reads.

    The texts are the parts of the main content, those of all text, and those of all text that is in no links.
    """
    kept, every, counts = (list(map(_count_words, parts)) for parts in texts)
    if sum(every) <= sum(kept):
        return False
    if _MAIN_ELEMENT.search(html):
        return not _prose(kept)
    return _prose(kept) < _TOLD_WORDS or _prose(counts) - _prose(kept) > _PROSE_LOST * sum(kept)


def _prose(counts: Iterable[int]) -> int:
    return sum(count for count in counts if count >= _SENTENCE_WORDS)


def _count_words(text: str) -> int:
    return len(_WORD.findall(text))


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
