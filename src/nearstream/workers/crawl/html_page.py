"""Read the HTML of a web page, in the process that parses HTML."""

import re
from collections.abc import Iterable, Iterator
from hashlib import blake2b
from html import unescape

from resiliparse.extract.html2text import extract_plain_text
from resiliparse.parse.html import HTMLTree

from nearstream.workers.crawl.html_markup import (
    ALT,
    BEGIN,
    END,
    IMAGE,
    READINGS,
    closed,
    count_words,
    opened,
    values_of,
)
from nearstream.workers.crawl.html_seen import found, take_unseen

# A main content of fewer words may be a notice or a heading. It is believed if it holds sentences and is not small
# beside others, or if the page marks it, because a frame makes the short articles of a site alike.
_MAIN_WORDS, _TOLD_WORDS, _SENTENCE_WORDS = 200, 25, 10
_WORD_MAX_CHARACTERS = 16  # on average, with what is between words
_PROSE_LOST = 2  # times the words of the main content
_MAIN_ELEMENT = re.compile(r"<(?:main|article)(?![^\s/>])", re.IGNORECASE)
# What a page hides at first may be shown by a script or a style sheet that is not in it.
_STYLED_LATER = re.compile(r"<script|<link\s[^<>]{0,500}stylesheet", re.IGNORECASE)
_TARGET_MAX_CHARACTERS = 4_096
# Browsers show the text of such a template, which belongs to the element around it.
_SHADOW = re.compile(r"<template(?=\s[^<>]{0,200}shadowrootmode)", re.IGNORECASE)
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
_NOTICE_CHARACTERS = 256  # at its beginning
_OF_SCRIPTS = re.compile("javascript", re.IGNORECASE)  # as a notice says that asks for scripts
_FIELD = re.compile(f"{BEGIN}[^{BEGIN}{END}]*{END}")
_FIELDS_NESTED = 3
_MARKS = re.compile(f"[{BEGIN}{END}{IMAGE}{ALT}]")
_LINK = re.compile(r'<a href="([^"]*)">')
_LINKED = re.compile(r"<a [^<>]*>[^<]*</a>")
_LONG_LINK = re.compile(r'<a href="[^"\n]*\n[^"]*">')
_TAG = re.compile("<[^<>]*>")
_MARKUP = re.compile(r"[<>&\s]+")  # which Resiliparse escapes only in some places
_PICTURE = re.compile(f"{IMAGE}([^{IMAGE}{ALT}]*){ALT}([^{IMAGE}{END}]*){END}")
# Up to the query, and nothing of what is in the page itself.
_TARGET = re.compile(rf'<a href="((?!(?i:data|javascript):|[?#"])[^"?#]+)|{IMAGE}((?!(?i:data):)[^{ALT}?#]+)')
# Resiliparse leaves out an element of one character, as a symbol.
_RUBY, _JOINT = re.compile(r"</?r(?:uby|[bpt])(?![^\s/>])[^<>]*+>", re.IGNORECASE), "\U0003fffe"
# An element that holds the title of the page holds its text too.
_COMMENTS = (
    ":is([id^=comment i], [class^=comment i], .comments, .comment-list, .commentlist, .comments-area, .post-comments,"
    " .user-comments, .replies, .replies-wrapper, #disqus_thread, .disqus_thread, #respond, .respond):not(:has(h1))"
    ":not(body, main, [id^=commentar i], [class^=commentar i], [id^=commented i], [class^=commented i])"
)
_UNSEEN = [*READINGS, "[hidden]", "audio", "canvas", "datalist", "dialog:not([open])", "video"]
_WITH_VALUES = "iframe[srcdoc], optgroup[label], option[label], div[placeholder]"


def page(html: str, *, main_content: bool, links: bool = False) -> str:
    """Return what is read of a web page, in lines.

    They are its title after a sign, the target of `rel=canonical`, a digest of text that may be hidden, the number of
    the parts of its text, these parts, such as a paragraph, and all parts that are seen, see `_shown`. The target and
    the digest may be empty. The sign is `s` if the main content was too small, so that the text is all text of the
    page, else `-`. With `links` the targets of links and the addresses of images are in the text.
    """
    marked = _FIELDS.sub(_marked, closed(_SHADOW.sub("<div", html)))
    tree = HTMLTree.parse(_RUBY.sub(rf"\g<0>{_JOINT}", marked))
    hidden = b"" if _STYLED_LATER.search(html) else _taken(tree, html)
    for image in found(tree.body, "img, area") if tree.body else ():
        values = (image.getattr(name) or "" for name in ("src", "alt"))
        source, alt = (_MARKUP.sub(" ", value)[:_TARGET_MAX_CHARACTERS].strip() for value in values)
        image.setattr("alt", f"{IMAGE}{source}{ALT} {alt} {END}")
    _keep_footers(tree)
    every = _extracted(tree, main_content=False)
    if (not every or _is_aside(html, every)) and (whole := opened(html)) != html:
        return page(whole, main_content=main_content, links=links)
    main = _main(tree) if main_content else every
    sign, parts = "-", _parts(main, links=links)
    is_short = main_content and sum(map(len, parts)) < _MAIN_WORDS * _WORD_MAX_CHARACTERS  # counting takes its time
    if is_short and sum(map(count_words, parts)) < _MAIN_WORDS:
        frames = found(tree.body, "iframe[srcdoc]") if tree.body else ()
        framed = [part for frame in frames for part in _of_value(frame.getattr("srcdoc") or "")]
        all_parts = [*_parts(every, links=links), *framed]
        if every and _is_too_small(html, parts, all_parts, [*_parts(_LINKED.sub("", every), links=False), *framed]):
            sign, parts, main = "s", all_parts, every
    shown = list(_shown(every, {*(main if parts else every).split("\n")}))
    for element in found(tree.body, _WITH_VALUES) if tree.body else ():
        shown += [f"-{part}" for value in values_of(element) for part in _of_value(value)]
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
        return BEGIN + tag
    return f"{tag} " if field["option"] else tag + END if field["end"] else f"{BEGIN}{tag}{END}"


def _main(tree: HTMLTree) -> str:
    """Return the lines of the main content without comments, unless few sentences are beside what is named so."""
    text = _extracted(tree, main_content=True)
    is_short = len(text) < _MAIN_WORDS * _WORD_MAX_CHARACTERS
    if is_short and _prose(map(count_words, _parts(text, links=False))) < _TOLD_WORDS:
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
    return text.replace(f"{BEGIN}[ ", BEGIN).replace(f" ] {END}", END).replace(f" ]{END}", END)


def _parts(text: str, *, links: bool) -> list[str]:
    """Return the parts of an extracted text, without fields, each in one line."""
    if IMAGE in text:
        text = _PICTURE.sub(r" \1 " if links else "", text)
    text = _LINK.sub(r"(\1) ", text) if links else text
    for _ in range(_FIELDS_NESTED if BEGIN in text else 0):
        text = _FIELD.sub(lambda field: "\n" if "\n" in field[0] else " ", text)
    plain = _TAG.sub("", text)
    lines = unescape(plain if plain.isascii() else _MARKS.sub("", plain)).split("\n")
    return [part for line in lines if (part := " ".join(line.split()))]


def _shown(text: str, main: set[str]) -> Iterator[str]:
    """Yield all parts that are seen of a page.

    Each is one line, behind `+` in the main content and else behind `-`.

    The addresses of the links and images of a block follow its text, after `@`. Fields are parts of their own.
    """
    plain = _TAG.sub("", _PICTURE.sub(r"\2", text) if IMAGE in text else text)
    lines = unescape(plain.replace(BEGIN, "\x1f").replace(END, "\x1f")).split("\n")
    for block, line in zip(text.split("\n"), lines, strict=True):
        if not block:
            continue
        sign = "+" if block in main else "-"
        for words in line.split("\x1f") if "\x1f" in line else (line,):
            if words := " ".join(words.split()):
                yield sign + words
        if "<a" in block or IMAGE in block:
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


def _digest(data: bytes) -> str:
    return blake2b(data, digest_size=16).hexdigest() if data else ""


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
        if name.lower() == "textarea" or not _OF_SCRIPTS.search(text, 0, _NOTICE_CHARACTERS):
            words = max(words, count_words(text))
    return words >= _TOLD_WORDS and words > _PROSE_LOST * _prose(
        map(count_words, _parts(_LINKED.sub("", every), links=False))
    )


def _is_too_small(html: str, *texts: list[str]) -> bool:
    """Return whether a main content may be a notice or a heading beside what a person reads.

    The texts are the parts of the main content, those of all text, and those of all text that is in no links.
    """
    kept, every, counts = (list(map(count_words, parts)) for parts in texts)
    if sum(every) <= sum(kept):
        return False
    if _MAIN_ELEMENT.search(html):
        return not _prose(kept)
    return _prose(kept) < _TOLD_WORDS or _prose(counts) - _prose(kept) > _PROSE_LOST * sum(kept)


def _prose(counts: Iterable[int]) -> int:
    return sum(count for count in counts if count >= _SENTENCE_WORDS)
